"""A controller joins first, and answers with what runtime, system and files say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import model
from model import controllers
from model.controllers import answer, join, read_seat, require_demands
from model.folders import source_sha256
from model.refusal import Refused

CODE = source_sha256(Path(model.__file__).parent)
ASKED = {
    "process": 0,
    "processes": 1,
    "coordinator": None,
    "platform": "cpu",
    "nonce": "n" * 32,
    "code_sha256": CODE,
}


def test_a_controller_alone_answers_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_WORKER_ID", "3")
    monkeypatch.setenv("TPU_WORKER_HOSTNAMES", "somewhere")
    seat = read_seat(ASKED)
    join(seat)
    require_demands(seat)
    found = answer(seat)
    assert (found["process_index"], found["process_count"]) == (0, 1)
    assert (found["nonce"], found["code_sha256"]) == ("n" * 32, CODE)
    assert found["process_id"] == os.getpid()
    devices = json.loads(found["local_devices"])
    assert len(devices) == found["local_device_count"] == 4
    assert {each["platform"] for each in devices} == {"cpu"}
    told = json.loads(found["environment"])
    assert told["TPU_WORKER_ID"] == "3"
    assert "TPU_WORKER_HOSTNAMES" not in told


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"platform": "tpu"}, "platform_mismatch"),
        ({"code_sha256": "0" * 64}, "code_mismatch"),
    ],
)
def test_another_platform_or_other_code_is_refused(changes: dict, code: str) -> None:
    with pytest.raises(Refused) as refused:
        require_demands(read_seat(ASKED | changes))
    assert refused.value.code == code


@pytest.mark.parametrize("changes", [{"process": 1}, {"process": -1}, {"processes": 2}])
def test_a_seat_that_makes_no_sense_is_refused(changes: dict) -> None:
    with pytest.raises(Refused) as refused:
        read_seat(ASKED | changes)
    assert refused.value.code == "request_malformed"


def test_a_request_without_a_field_is_refused_by_its_name() -> None:
    with pytest.raises(Refused) as refused:
        read_seat({name: value for name, value in ASKED.items() if name != "nonce"})
    assert refused.value.fields == ("nonce",)


def test_one_changed_byte_is_other_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    before = source_sha256(tmp_path)
    (tmp_path / "a.pyc").write_bytes(b"compiled")
    assert source_sha256(tmp_path) == before
    (tmp_path / "a.py").write_text("x = 2\n")
    assert source_sha256(tmp_path) != before


def test_a_process_that_asks_for_devices_first_is_found_out() -> None:
    """Many a script swallows JAX's error, and trains alone from then on."""
    script = (
        "import jax, sys\n"
        "jax.devices()\n"
        "from model.controllers import join, read_seat\n"
        "from model.refusal import Refused\n"
        f"asked = {ASKED!r} | dict(process=1, processes=2, coordinator='127.0.0.1:1')\n"
        "jax.distributed.initialize = lambda *a, **k: None  # the error swallowed\n"
        "try:\n    join(read_seat(asked))\n"
        "except Refused as refused:\n    sys.exit(refused.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip().endswith("controllers_apart"), done.stderr


def test_jax_itself_refuses_to_join_after_a_question_for_devices() -> None:
    controllers.jax.devices()
    seat = read_seat(ASKED | {"coordinator": "127.0.0.1:1"})
    with pytest.raises(RuntimeError, match="before any JAX"):
        join(seat)
