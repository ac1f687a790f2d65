"""The comparison of traces finds every planted difference, and only those."""

import copy
import json
from pathlib import Path

import pytest

from model.checks import recovery
from model.update_trace import KINDS

LEAVES = ("h.0.ln_1.bias", "wte.weight")
TREES = ("gradients", "first_moment", "second_moment", "parameters")


def line(update: int) -> dict:
    digests = [
        {
            "kind": kind,
            "leaf": leaf,
            "dtype": "float32",
            "shape": "[2]",
            "sha256": f"{kind}-{leaf}-{update}",
        }
        for kind in KINDS
        for leaf in (LEAVES if kind in TREES else ("",))
    ]
    values = {"epoch": update // 4, "cursor": 16 * update, "loss_bits": f"0x{update}"}
    return {"update": update, "values": values, "digests": digests}


EXPECTED = {update: line(update) for update in range(1, 7)}


def planted(kind: str, update: int, field: str = "sha256") -> dict[int, dict]:
    changed = copy.deepcopy(EXPECTED)
    digest = [d for d in changed[update]["digests"] if d["kind"] == kind][-1]
    digest[field] += "-other"
    return changed


def test_equal_traces_differ_nowhere_and_every_kind_is_compared() -> None:
    rows = recovery.compare_kinds(EXPECTED, EXPECTED, "resumed", "point-05")
    assert len(rows) == 6 * len(KINDS)
    assert all(row["expected"] == row["measured"] for row in rows)
    assert all(row["first_difference"] == "" for row in rows)
    assert {row["measure"] for row in rows} == {f"resumed_{kind}" for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", ["sha256", "dtype", "shape"])
def test_one_changed_digest_is_found_in_its_kind_and_update(
    kind: str, field: str
) -> None:
    rows = recovery.compare_kinds(
        EXPECTED, planted(kind, 3, field), "resumed", "point-05"
    )
    parted = [row for row in rows if row["expected"] != row["measured"]]
    assert [(row["measure"], row["case_name"]) for row in parted] == [
        (f"resumed_{kind}", "point-05/update-03")
    ]
    assert parted[0]["first_difference"].startswith(f"update 3, {kind}")


def test_the_first_leaf_that_parts_is_named() -> None:
    rows = recovery.compare_updates(
        EXPECTED, planted("first_moment", 2), "repeated_update", "same-seeds"
    )
    assert [
        row["first_difference"][:45] for row in rows if row["first_difference"]
    ] == ["update 2, first_moment wte.weight: expected f"]


def test_of_a_list_of_values_the_first_entry_that_parts_is_named() -> None:
    changed = planted("document_ids", 3)
    expected = copy.deepcopy(EXPECTED)
    expected[3]["values"]["document_ids"] = ["a", "b", "c"]
    changed[3]["values"]["document_ids"] = ["a", "x", "y"]
    lines = expected[3], changed[3]
    place = "update 3, document_ids: index [1]: expected b, measured x"
    assert recovery.first_difference(*lines, "document_ids") == place
    changed[3]["values"]["document_ids"] = ["a", "b", "c"]
    typed = recovery.first_difference(*lines, "document_ids")
    assert typed.startswith("update 3, document_ids: expected float32 [2] ")
    changed[3]["values"]["document_ids"] = ["a"]
    whole = "update 3, document_ids: expected ['a', 'b', 'c'], measured ['a']"
    assert recovery.first_difference(*lines, "document_ids") == whole


def test_updates_that_one_trace_lacks_give_no_row() -> None:
    shorter = {update: EXPECTED[update] for update in (5, 6)}
    assert len(recovery.compare_updates(EXPECTED, shorter, "m", "c")) == 2


def test_equal_updates_and_epochs_are_counted() -> None:
    assert recovery.equal_updates(EXPECTED, EXPECTED, "parameters") == 6
    changed = planted("parameters", 4)
    assert recovery.equal_updates(EXPECTED, changed, "parameters") == 5
    assert recovery.epochs_crossed(EXPECTED) == 1
    assert recovery.epochs_crossed({1: EXPECTED[1]}) == 0
    assert recovery.epochs_crossed({}) == 0


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    whole = json.dumps(line(1)) + "\n"
    (tmp_path / "trace.jsonl").write_text(whole + json.dumps(line(2))[:40])
    assert list(recovery.read_trace(tmp_path / "trace.jsonl")) == [1]
