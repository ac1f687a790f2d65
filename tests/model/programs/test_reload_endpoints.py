"""The reloading program cannot reach the training code, however it is installed."""

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from model.checks.endpoints import TRAINING_MODULES, importable
from tasks.export_endpoints import RELOAD, lay_out_modules

# What an editable install leaves: a finder that answers for `model.*` by name.
SCRIPT = """
    import importlib.util, json, sys
    from pathlib import Path

    class Editable:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if not name.startswith("model."):
                return None
            file = Path({project!r}, *name.split(".")).with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file)

    sys.meta_path.append(Editable)
    sys.path.append({project!r})
    from model.programs import reload_endpoints
    from model.checks import endpoints
    before = importlib.util.find_spec("model.training") is not None
    reload_endpoints.forget_other_roots(Path({folder!r}))
    rows = reload_endpoints.process_rows(0)
    print(json.dumps([before, [row["value_count"] for row in rows]]))
    """


def test_only_what_the_program_imports_is_laid_out(tmp_path: Path) -> None:
    folder = lay_out_modules(tmp_path)
    laid = {
        ".".join(file.relative_to(folder).with_suffix("").parts)
        for file in folder.rglob("*.py")
    }
    assert RELOAD in laid
    assert not laid & set(TRAINING_MODULES)


def test_the_training_code_is_out_of_reach_even_beside_an_editable_install(
    tmp_path: Path, project: Path
) -> None:
    folder = lay_out_modules(tmp_path)
    script = textwrap.dedent(SCRIPT).format(project=str(project), folder=str(folder))
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert ended.stdout.strip() == b"[true, [0, 0, 0]]"


def test_the_names_of_the_training_modules_are_real() -> None:
    """A list of names that do not exist could never be imported anywhere."""
    assert importable(TRAINING_MODULES) == list(TRAINING_MODULES)
    assert importable(("model.no_such_module",)) == []
    assert importlib.import_module("model.training")


def test_a_module_that_lacks_another_one_is_within_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wants.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("wants", "wants_not", "no_such_package.module")
    assert importable(names) == ["wants"]
