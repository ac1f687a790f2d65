"""The commands that hand out what a run made: `export` and `generate`."""

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from flows.display import note, print_json, print_lines, printable
from flows.options import DEFAULT_ROOT, Json, Root, Run
from flows.reading import (
    UnknownName,
    check_known,
    open_run,
    selected_run,
    tell_unless_completed,
    view_rows,
)
from model.config import POLICIES
from tasks.errors import StageError
from tasks.temporary_folders import temporary_folder

PROGRAM = "model.programs.generate_text"


class NotExported(StageError):
    """The artifacts of a run could not be written."""


def export(
    run: Run,
    folder: Annotated[Path, Parameter(help="New or empty folder to write to.")],
    /,
    *,
    root: Root = DEFAULT_ROOT,
) -> int:
    """Copy the artifacts of a run under readable names, FOLDER/STAGE/NAME."""
    connection = _open_release(root, run)
    about = selected_run(connection)
    tell_unless_completed(about)
    run_id = about["run_id"]
    artifacts = view_rows(connection, "run_artifacts", run_id=run_id)
    try:
        if folder.exists() and any(folder.iterdir()):
            raise NotExported(f"{str(folder)!r} is not empty; name a new folder.")
        for row in artifacts:
            _copy(root, row["sha256"], folder / row["stage"] / row["artifact"])
    except OSError as error:
        raise NotExported(
            f"{str(folder)!r} cannot be written: {error.strerror or error}."
        ) from error
    released = [r["sha256"] for r in artifacts if r["artifact"] == "release.json"]
    print_lines(
        [
            f"{len(artifacts)} artifacts of run {run_id} are in {folder}.",
            *(f"Its release.json has SHA-256 {sha256}." for sha256 in released),
        ]
    )
    return 0


def _open_release(root: Path, run: str) -> Any:
    """Returns a run; the latest is the newest that made a release, not a mere proof."""
    connection = open_run(root, run)
    if run != "latest":
        return connection
    stages = view_rows(connection, "run_stages", stage="export_endpoints")
    made = {row["run_id"] for row in stages}
    newest = next(
        (r["run_id"] for r in view_rows(connection, "runs") if r["run_id"] in made),
        None,
    )
    is_selected = newest in (None, selected_run(connection)["run_id"])
    return connection if is_selected else open_run(root, newest)


def _copy(root: Path, sha256: str, target: Path) -> None:
    from warehouse.store import Store

    source = Store(root, is_writable=False).artifact_path(sha256)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())


def generate(
    prompt: Annotated[str, Parameter(help="Text to go on from, such as 'abc|'.")],
    /,
    *,
    policy: Annotated[
        str, Parameter(help="Number formats of the release: fp32, bf16 or w8a8.")
    ] = "fp32",
    run: Annotated[str, Parameter(help="The run whose release is used.")] = "latest",
    root: Root = DEFAULT_ROOT,
    is_json: Json = False,
) -> int:
    """Let the exported endpoints of a run continue a text."""
    check_known("Policy", policy, list(POLICIES))
    generated = _generate(root, run, prompt, policy)
    if is_json:
        print_json(generated)
    else:
        print_lines([printable(generated["text"])])
        note(f"stopped by {generated['stop_reason']}, policy {policy}")
    return 0


def _generate(root: Path, run: str, prompt: str, policy: str) -> dict[str, Any]:
    from tasks.run_program import ProgramCall, run_program
    from warehouse.store import Store

    connection = _open_release(root, run)
    about = selected_run(connection)
    tell_unless_completed(about)
    run_id = about["run_id"]
    store = Store(root, is_writable=False)
    rows = view_rows(connection, "run_artifacts", run_id=run_id)
    made = {
        stage: {r["artifact"]: r["sha256"] for r in rows if r["stage"] == stage}
        for stage in ("train_model", "export_endpoints")
    }
    if not all(made.values()):
        raise UnknownName(
            f"Run {run_id} has no release (its training or export did not finish); "
            "`harness run` goes on from where it stopped."
        )
    wanted = {**made["export_endpoints"]}
    wanted["parameters.npz"] = made["train_model"]["parameters.npz"]
    request = {
        "prompt": prompt,
        "policy": policy,
        "files": {name: str(store.artifact_path(wanted[name])) for name in wanted},
    }
    with temporary_folder("generate") as folder:
        call = ProgramCall(program=PROGRAM, request=request, folder=folder)
        generated = (run_program(call).out / "generation.json").read_bytes()
    document: dict[str, Any] = json.loads(generated)
    return document
