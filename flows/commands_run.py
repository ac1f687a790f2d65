"""`harness run`: the qualify flow from the command line."""

import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from flows.commands_review import summarize
from flows.options import DEFAULT_ROOT, Json, Root
from model.config import ModelConfig, to_dict
from model.presets import override, preset
from tasks.accelerators import known_accelerator
from tasks.temporary_folders import temporary_folder

TOKENIZE = "model.programs.tokenize_corpus"

Preset = Annotated[
    str,
    Parameter(name="--preset", help="Configuration to start from: fixture or prose."),
]
Manifest = Annotated[
    Path | None,
    Parameter(help="Manifest (JSON) of your own corpus; else the fixture's."),
]
Settings = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        negative=(),
        consume_multiple=True,
        show_default=False,
        help="Settings that differ, each KEY=VALUE, such as train.updates=10; "
        "`harness settings` lists them.",
    ),
]
Fresh = Annotated[
    bool, Parameter(negative=(), show_default=False, help="Compute every stage again.")
]


def run(
    *,
    preset_name: Preset = "fixture",
    manifest: Manifest = None,
    settings: Settings = (),
    interrupt_at: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            consume_multiple=True,
            show_default=False,
            help="Updates after each of which one training is killed, such as 3,5,6.",
        ),
    ] = (),
    fresh: Fresh = False,
    implementation: Annotated[
        Path | None,
        Parameter(help="Python file with your own functions; else the built-in ones."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Qualify the training system: run nine stages, keep the evidence, show verdicts.

    Stages whose result could not differ are reused. Exit code 0: the run is complete.
    """
    points = ",".join(interrupt_at)
    overrides = [*settings, *([f"interrupt.points={points}"] if points else [])]
    # What is wrong with the request is said before anything is started.
    config = override(preset(preset_name), overrides)
    known_accelerator(config.target.accelerator, config.target.platform)
    run_id = start_flow(
        "qualify",
        root,
        manifest,
        config.model,
        overrides=overrides,
        preset_name=preset_name,
        is_fresh=fresh,
        **_own_functions(implementation),
    )
    return summarize(root, run_id, is_json=is_json)


def _own_functions(file: Path | None) -> dict[str, str]:
    """Returns what a flow is asked about a user's file, each function called before.

    Raises:
        Refused: `implementation_misbehaved`, a function is not one of the system.
        ProgramRefused: The file cannot be loaded.
    """
    if file is None:
        return {}
    from flows.implementation_check import refuse_wrong_functions

    path = str(file.absolute())
    refuse_wrong_functions(path)
    return {"implementation": path}


def start_flow(
    name: str,
    root: Path,
    manifest: Path | None,
    model: ModelConfig,
    **parameters: Any,
) -> str:
    """Checks what a flow is about, runs it, and returns the id of the run.

    Args:
        name: Name of the flow.
        root: Folder of the store.
        manifest: Manifest of a user's corpus; None for the fixture's.
        model: What the documents of the corpus have to fit.
        parameters: What else the flow takes, by name, with `overrides` of settings.
    """
    os.environ["HARNESS_ROOT"] = str(root.absolute())
    _check_inputs(root, manifest, model)
    from flows.start_flow import run_flow

    path = str(manifest.absolute()) if manifest else None
    return run_flow(name, manifest=path, **parameters)


def _check_inputs(root: Path, manifest: Path | None, model: ModelConfig) -> None:
    """Refuses a corpus or a store that cannot be used, before anything is started.

    The store comes last, because opening it makes the folder and tidies it up: a run
    that is refused leaves it as it was.
    """
    from tasks.corpus_files import corpus_files
    from warehouse.store import Store

    corpus_files(str(manifest) if manifest else None)
    if manifest is not None:
        _check_corpus(manifest.absolute(), model)
    Store(root)


def _check_corpus(manifest: Path, model: ModelConfig) -> None:
    """Has the program of the first stage read the corpus, which it may refuse."""
    from tasks.run_program import ProgramCall, run_program

    request = {"manifest": str(manifest), "model": to_dict(model)}
    with temporary_folder("corpus") as folder:
        run_program(ProgramCall(program=TOKENIZE, request=request, folder=folder))
