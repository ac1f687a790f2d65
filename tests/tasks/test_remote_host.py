"""What one host does with its order, without a server: a gang of one meets nobody."""

import dataclasses
from pathlib import Path

import pytest

from tasks.gang import Patience
from tasks.remote_host import END, NEVER_RAN, Order, OtherCode, run_host
from tasks.storage import Storage, StorageFailed
from tasks.target_challenge import code_sha256

STUB = Path(__file__).parent.parent / "data" / "stub_controller"


def order(folder: Path, **changes: str) -> Order:
    shared = Storage(f"file://{folder}/shared")
    request = {
        "process": 0,
        "processes": 1,
        "platform": "cpu",
        "act": "go",
        "code_sha256": code_sha256(),
    }
    return Order(
        gang="f" * 32,
        storage=f"{shared.url}/gang",
        program="stub_controller",
        inputs={"tokens": shared.put("tokens", b"tokens")},
        request=request | changes,
        patience=dataclasses.asdict(Patience()),
        disturbance=None,
        deadline_seconds=60,
    )


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(STUB))


def test_a_controller_that_completes_has_its_end_in_the_storage(tmp_path: Path) -> None:
    asked = order(tmp_path)
    assert run_host(asked) == ""
    end = Storage(asked.storage).within("controller-0").get_json(END)
    assert end is not None
    assert (end["return_code"], end["cause"], end["processes_left"]) == (0, "", 0)
    assert len(end["events"]) == 3


def test_a_controller_that_fails_is_the_cause(tmp_path: Path) -> None:
    asked = order(tmp_path, act="crash")
    assert run_host(asked).startswith("controller 0: stub_controller ended with exit")


def test_other_code_is_refused_by_both_digests_and_nothing_runs(tmp_path: Path) -> None:
    asked = order(tmp_path, code_sha256="0" * 64)
    with pytest.raises(OtherCode, match=f"{code_sha256()}.*{'0' * 64}"):
        run_host(asked)
    end = Storage(asked.storage).within("controller-0").get_json(END)
    assert end is not None
    assert (end["return_code"], end["process_id"]) == (NEVER_RAN, 0)


def test_an_altered_input_is_refused(tmp_path: Path) -> None:
    asked = order(tmp_path)
    Storage(f"file://{tmp_path}/shared").put("tokens", b"other tokens")
    with pytest.raises(StorageFailed, match="not what was written"):
        run_host(asked)
