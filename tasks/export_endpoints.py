"""The stage that exports the release and reopens it without its source."""

import shutil
from pathlib import Path

from model.config import ExportConfig, ModelConfig, to_dict
from tasks.program_environment import root_of
from tasks.source_closure import source_closure
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.inference import (
    Endpoint,
    Generation,
    LoweredDot,
    ReleaseSetting,
)
from warehouse.store import Execution

EXPORT = "model.programs.export_endpoints"
RELOAD = "model.programs.reload_endpoints"
# The program loads this one by name, to describe the process it ran in.
LOADED_BY_NAME = "model.runtime"
# And this one, where another system than the built-in one is asked for.
REPLACED = "model.replaced"
# And these for a user's file; adapters of arrays belong to the training code.
PUT_A_FILE_IN_PLACE = ("model.implementation", "model.text_adapters")


@stage(
    programs=(EXPORT, RELOAD, LOADED_BY_NAME),
    writes=(
        Measurement,
        Comparison,
        Refusal,
        Endpoint,
        LoweredDot,
        ReleaseSetting,
        Generation,
    ),
)
def export_endpoints(
    work: Work,
    tokens: Execution,
    trained: Execution,
    quantized: Execution,
    model: ModelConfig,
    export: ExportConfig,
) -> None:
    """Exports six endpoints and runs them in a process without the training code.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training, whose parameters are released.
        quantized: The cache checks; a release comes after them.
        model: Shape of the model.
        export: Platforms, prompts and bounds.
    """
    tokens_path = work.fetch(tokens, "tokens.npz")["tokens.npz"]
    parameters = work.fetch(trained, "parameters.npz")
    exported = work.run(
        EXPORT,
        {
            "parameters": parameters["parameters.npz"],
            "model": to_dict(model),
            "export": to_dict(export),
        },
    )

    released = {file.name: str(file) for file in (exported.out / "artifacts").iterdir()}
    work.run(
        RELOAD,
        {
            "export": to_dict(export),
            "files": released | parameters,
            "source_outputs": str(exported.out / "source_outputs.npz"),
            "expected_settings": str(exported.out / "expected_settings.json"),
            "tokens": tokens_path,
            "exporting_process_id": exported.process_id,
            "trained_parameters_sha256": trained.artifact("parameters.npz").sha256,
        },
        module_root=lay_out_modules(
            work.scratch("without-training-code"),
            is_other_system=work.is_other_system,
        ),
    )


def lay_out_modules(folder: Path, *, is_other_system: bool = False) -> Path:
    """Copies the modules that the reloading program imports, and no others.

    Args:
        folder: An empty folder.
        is_other_system: Whether what puts another system in place has to lie there too;
            what of the system is absent stays absent.

    Returns:
        The folder, fit to be the only place from which `model` is imported.
    """
    root = root_of("model")
    files = [
        _file_of(root, name)
        for name, _ in source_closure(RELOAD, LOADED_BY_NAME).modules
    ]
    if is_other_system:
        files += [_file_of(root, REPLACED), *(root / "model" / "faults").glob("*.py")]
        own = source_closure(*PUT_A_FILE_IN_PLACE).modules
        files += [_file_of(root, name) for name, _ in own]
    for file in files:
        copy = folder / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return folder


def _file_of(root: Path, module: str) -> Path:
    source = root.joinpath(*module.split("."))
    package = source / "__init__.py"
    return package if package.is_file() else source.with_suffix(".py")
