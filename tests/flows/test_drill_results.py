"""What a drill says on the terminal, and its exit code."""

from pathlib import Path

import pytest

from flows import calibration
from flows.drill_results import show_drill
from tests.store_maker import StoreMaker
from tests.warehouse.made_drills import broken, planted, read
from warehouse.errors import ContractError
from warehouse.store import Store


def shown(folder: Path, *records: object) -> int:
    made = StoreMaker(Store(folder / "evidence"))
    made.execute("drill_system", records)
    made.run("run-1", flow="drill")
    return show_drill(folder / "evidence", "run-1", is_json=False)


def test_faults_that_are_all_killed_give_exit_code_0(tmp_path: Path, capsys):
    rows = planted("caught", "1.8"), read("", "1.8"), broken("caught", "1.8")
    assert shown(tmp_path, *rows) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == (
        "1 of 1 faults killed; 0 false alarms in 0 benign variants; 0 idle checks."
    )
    assert lines[-1].startswith('Next: harness sql "select * from kill_matrix"')


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (read("other", "1.8"), "1 survived; "),
        (broken("other", "1.8"), "1 false alarms in 1 benign variants"),
    ],
    ids=["survivor", "false alarm"],
)
def test_a_survivor_or_a_false_alarm_gives_exit_code_1(
    tmp_path: Path, capsys, record, words: str
):
    is_benign = "alarms" in words
    rows = (
        *(planted("caught", "1.8"), planted("other", "1.8", is_benign=is_benign)),
        *(read("", "1.8"), broken("caught", "1.8"), record),
    )
    assert shown(tmp_path, *rows) == 1
    assert words in capsys.readouterr().out


def test_a_drill_of_which_nothing_can_be_read_has_killed_nothing(
    tmp_path: Path, capsys, monkeypatch
):
    """No row has no survivor, and would have made a table without a limit."""
    assert shown(tmp_path, read("", "1.8")) == 1
    assert "No planted fault is on record" in capsys.readouterr().out
    written: list[object] = []
    monkeypatch.setattr(calibration, "write_calibration", written.append)
    with pytest.raises(ContractError, match="stays as it is"):
        calibration.accept_drill(tmp_path / "evidence", "run-1")
    assert written == []
