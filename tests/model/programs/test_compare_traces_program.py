"""The comparing program gives each role of a trace its own rows."""

import json
from pathlib import Path

import pytest

from model.programs import compare_traces
from model.refusal import Refused
from model.update_trace import KINDS


def write_trace(path: Path, updates: range, seed: str = "") -> str:
    lines = [
        {
            "update": update,
            "values": {"epoch": update // 3},
            "digests": [
                {
                    "kind": kind,
                    "leaf": "",
                    "dtype": "int32",
                    "shape": "[]",
                    "sha256": f"{kind}{update}{seed}",
                }
                for kind in KINDS
            ],
        }
        for update in updates
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def run(folder: Path, role: str, trace: str) -> dict[str, list[dict]]:
    expected = write_trace(folder / "expected.jsonl", range(1, 7))
    measured = [{"trace": trace, "role": role, "case": "case"}]
    compare_traces.main({"expected": expected, "measured": measured}, folder)
    return {
        path.stem: json.loads(path.read_text())
        for path in (folder / "records").iterdir()
    }


def test_a_resumed_trace_is_compared_kind_by_kind(tmp_path: Path) -> None:
    written = run(tmp_path, "resumed", write_trace(tmp_path / "r", range(2, 7)))
    assert len(written["comparisons"]) == 5 * len(KINDS)
    measured = {row["measure"]: row["value_count"] for row in written["measurements"]}
    assert measured == {"epochs_crossed": 2}


@pytest.mark.parametrize("role", ["interrupted", "repeated"])
def test_whole_updates_are_compared(tmp_path: Path, role: str) -> None:
    written = run(tmp_path, role, write_trace(tmp_path / "r", range(1, 4)))
    assert [row["measure"] for row in written["comparisons"]] == [f"{role}_update"] * 3
    assert all(row["expected"] == row["measured"] for row in written["comparisons"])


@pytest.mark.parametrize(
    ("role", "kind"),
    [("other_dropout_seed", "dropout_key"), ("other_order_seed", "order")],
)
def test_equal_updates_of_another_seed_are_counted(
    tmp_path: Path, role: str, kind: str
) -> None:
    different = run(tmp_path, role, write_trace(tmp_path / "r", range(1, 4), "other"))
    counts = {r["case_name"]: r["value_count"] for r in different["measurements"]}
    assert counts == {
        f"case/{kind}": 0,
        "case/loss_bits": 0,
        "case/parameters": 0,
        "case": 3,
    }


def test_a_seed_that_changes_nothing_is_seen(tmp_path: Path) -> None:
    same = run(tmp_path, "other_order_seed", write_trace(tmp_path / "r", range(1, 4)))
    counts = {r["case_name"]: r["value_count"] for r in same["measurements"]}
    assert counts["case/order"] == counts["case/parameters"] == 3


def test_an_unknown_role_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="'other'") as refused:
        run(tmp_path, "other", write_trace(tmp_path / "r", range(1, 2)))
    assert refused.value.code == "request_malformed"
