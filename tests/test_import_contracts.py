"""The import contracts: the project keeps all of them, and each one can break."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PLANTED = {
    "warehouse/planted.py": "import jax\nimport prefect\n",
    "flows/planted.py": "import duckdb\nimport model.transformer\nimport matplotlib\n",
    "model/planted.py": "import model.reference.adam\nimport warehouse.store\n",
    "model/reference/planted.py": "import jax\nimport model.transformer\n",
}


def verdicts(folder: Path) -> list[str]:
    """Returns KEPT or BROKEN for each contract of the project in `folder`."""
    command = Path(sys.executable).with_name("lint-imports")
    output = subprocess.run(
        [str(command), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return re.findall(r"\b(KEPT|BROKEN)\b", output)


def test_every_contract_is_kept_and_breaks_when_an_import_is_planted(
    project: Path, tmp_path: Path
) -> None:
    shutil.copy(project / "pyproject.toml", tmp_path)
    for package in ("model", "tasks", "flows", "warehouse", "deploy"):
        shutil.copytree(
            project / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("data", "views", "__pycache__"),
        )
    kept = verdicts(tmp_path)
    for name, text in PLANTED.items():
        (tmp_path / name).write_text(text)
    broken = verdicts(tmp_path)
    assert kept == ["KEPT"] * len(broken)
    assert broken == ["BROKEN"] * 9
