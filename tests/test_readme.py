"""What the README says about files and SQL is held against the disk and the views."""

import re
import subprocess
from pathlib import Path

import pytest

PACKAGES = ("model", "tasks", "flows", "warehouse", "deploy")


def drawn_paths(text: str) -> list[str]:
    """Returns the paths of an indented tree, whose folders end with a slash."""
    paths: list[str] = []
    folders: list[tuple[int, str]] = []
    for line in text.splitlines():
        name = line.strip().split("  ")[0].strip()
        if not name:
            continue
        depth = len(line) - len(line.lstrip())
        folders = [(level, folder) for level, folder in folders if level < depth]
        path = "".join(folder for _, folder in folders) + name
        paths.append(path)
        if name.endswith("/"):
            folders.append((depth, name))
    return paths


@pytest.fixture(scope="module")
def readme() -> str:
    return Path(__file__).parent.parent.joinpath("README.md").read_text()


@pytest.fixture(scope="module")
def tree(readme: str) -> list[str]:
    section = readme.split("## The tree", 1)[1]
    return drawn_paths(re.search(r"```\n(.*?)```", section, re.DOTALL).group(1))


def test_every_path_of_the_tree_exists(tree: list[str], project: Path) -> None:
    missing = [path for path in tree if not (project / path).exists()]
    assert len(tree) > 60
    assert missing == []


def test_every_module_stands_in_the_tree(tree: list[str], project: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    modules = [
        path
        for path in listed
        if path.startswith(PACKAGES) and not path.endswith("__init__.py")
    ]
    assert len(modules) > 40
    assert sorted(set(modules) - set(tree)) == []


def test_a_tree_with_a_missing_module_would_be_noticed() -> None:
    drawn = drawn_paths(
        "model/   numbers\n  programs/\n    entry.py   x\n  a.py\nb.py\n"
    )
    assert drawn == [
        "model/", "model/programs/", "model/programs/entry.py", "model/a.py", "b.py"
    ]  # fmt: skip


def test_the_commands_of_the_readme_exist(readme: str, project: Path) -> None:
    """Every `harness VERB` is a command and every `make VERB` a target."""
    from flows.command_line import app

    verbs = set(re.findall(r"^harness ([a-z]+)", readme, re.MULTILINE))
    targets = set(re.findall(r"^make ([a-z]+)", readme, re.MULTILINE))
    makefile = (project / "Makefile").read_text()
    assert {"review", "sql"} <= verbs | {"sql"}
    assert verbs <= set(app)
    assert targets and all(f"\n{target}:" in makefile for target in targets)


def test_every_sql_example_runs_on_a_store(readme: str, tmp_path: Path) -> None:
    """An example with a wrong name would fail here on an empty store too."""
    from warehouse.errors import QueryError
    from warehouse.load import open_warehouse
    from warehouse.query import ask
    from warehouse.store import Store

    blocks = re.findall(r"```sql\n(.*?)```", readme, re.DOTALL)
    examples = [
        part.strip() for block in blocks for part in block.split(";") if part.strip()
    ]
    inline = re.findall(r'harness sql "(.+?)"', readme)
    with open_warehouse(Store(tmp_path / "evidence").root) as connection:
        answers = [ask(connection, example) for example in [*examples, *inline]]
        with pytest.raises(QueryError):
            ask(connection, examples[0].replace("runs", "run"))
    assert len(answers) >= 20
    assert all(answer.names for answer in answers)
