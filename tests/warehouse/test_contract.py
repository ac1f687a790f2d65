"""The contract: every claim is listed, and a malformed contract is refused."""

import tomllib
from pathlib import Path

import pytest

from warehouse.calibration import read_calibration
from warehouse.contract import FOLDER, read_claims, read_contract
from warehouse.errors import ContractError

CLAIMS_OF_TASK = {1: range(14), 2: range(1, 10), 3: range(1, 9), 4: range(1, 9)}
CLAIMS_OF_TASK[5] = range(1, 16)
STAGES = {
    "tokenize_corpus",
    "train_model",
    "interrupt_training",
    "resume_training",
    "certify_recovery",
    "certify_crash",
    "drill_recovery",
    "evaluate_heldout",
    "quantize_cache",
    "export_endpoints",
    "profile_runtime",
    "qualify_tpu",
    "qualify_target",
    "rehearse_target",
    "rehearse_remote",
}

GOOD = """
[[claim]]
id = "1.3"
statement = "A made-up claim."
[[claim.requirement]]
stage = "train_model"
measure = "errors"
relation = "equal"
limit = 0
unit = "errors"
reason = "An integer identity."
"""


def test_the_contract_lists_every_claim_of_every_task():
    expected = [
        f"{task}.{number}"
        for task, numbers in CLAIMS_OF_TASK.items()
        for number in numbers
    ]
    assert [claim.id for claim in read_contract()] == expected


def test_claims_are_ordered_by_number_and_not_by_text():
    ids = [claim.id for claim in read_contract() if claim.review_task == 1]
    assert ids.index("1.10") == ids.index("1.9") + 1


def test_every_requirement_gives_its_reason():
    short = [
        (item.claim, item.measure)
        for claim in read_contract()
        for item in claim.requirements
        if len(item.reason.split()) < 3
    ]
    assert short == []


def test_what_the_fixture_owes_its_tuned_recipe_owes_too():
    """Same data and shape: a measure left out by a list would silently be unjudged."""
    owed = {
        name: {
            (item.claim, item.stage, item.measure, item.cases)
            for claim in read_contract()
            for item in claim.requirements
            if not item.presets or name in item.presets
        }
        for name in ("fixture", "fixture_tuned")
    }
    assert owed["fixture"] <= owed["fixture_tuned"]


def test_the_committed_calibration_is_well_formed():
    known = {claim.id for claim in read_contract()}
    assert {row.claim for row in read_calibration()} <= known


def write(folder: Path, text: str, name: str = "task_1.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_fields_left_out_have_their_defaults(tmp_path: Path):
    (claim,) = read_claims(write(tmp_path, GOOD))
    (item,) = claim.requirements
    assert (item.limit, item.cases, item.required_count) == (0, (), 1)
    assert (item.presets, item.scope, item.sampling) == ((), "any", "")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"equal"', '"about"', "relation is 'about'; allowed are"),
        ("limit = 0", "", "limit is None; it must be a finite number"),
        ("limit = 0", "limit = nan", "limit is nan"),
        ("limit = 0", "limit = true", "limit is True"),
        ('"equal"', '"reported"', "compares with no limit"),
        ("limit = 0", "limit = 0\ncolour = 1", r"unknown fields \['colour'\]"),
        (
            'reason = "An integer identity."',
            "",
            "reason is None; it must be a sentence",
        ),
        ('"An integer identity."', '" "', "reason is ' '"),
        ('unit = "errors"', "", "a number needs one"),
        ('id = "1.3"', 'id = "1.03"', "has the id '1.03'"),
        ('id = "1.3"', 'id = "2.3"', "of another task"),
        ('"train_model"', '"Train model"', "stage is 'Train model'"),
        ("limit = 0", "limit = 0\nrequired_count = 0", "required_count is 0"),
        ("limit = 0", 'limit = 0\nscope = "some"', "scope is 'some'"),
        ("limit = 0", 'limit = 0\ncases = "train"', "cases is 'train'"),
        ("limit = 0", 'limit = 0\ncases = ["a", "a"]', "'a' stands there twice"),
        ("limit = 0", 'limit = 0\npresets = [""]', "presets is"),
        ("[[claim.requirement]]", "[[claim.requirements]]", "unknown fields"),
        ("limit = 0", "limit = ", "cannot be read"),
    ],
)
def test_a_malformed_contract_is_refused_and_the_place_is_named(
    tmp_path: Path, old: str, new: str, said: str
):
    assert old in GOOD
    with pytest.raises(ContractError, match=said) as caught:
        read_claims(write(tmp_path, GOOD.replace(old, new)))
    assert "task_1.toml" in str(caught.value)


def test_a_claim_without_requirement_is_refused(tmp_path: Path):
    text = GOOD.split("[[claim.requirement]]")[0]
    with pytest.raises(ContractError, match="nothing could prove it"):
        read_claims(write(tmp_path, text))


def test_the_same_requirement_twice_is_refused(tmp_path: Path):
    repeated = "[[claim.requirement]]" + GOOD.split("[[claim.requirement]]")[1]
    with pytest.raises(ContractError, match="stands there twice"):
        read_claims(write(tmp_path, GOOD + repeated))


def test_the_same_claim_twice_is_refused(tmp_path: Path):
    write(tmp_path, GOOD + GOOD)
    with pytest.raises(ContractError, match=r"claim '1\.3' stands there twice"):
        read_contract(tmp_path)


def test_a_folder_without_contract_is_refused(tmp_path: Path):
    with pytest.raises(ContractError, match="no contract"):
        read_contract(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[[calibration]]\nclaim = '1.1'\n",
        "calibration = 3\n",
        "[[calibration]\n",
        "x = nan",
    ],
)
def test_a_malformed_calibration_is_refused(tmp_path: Path, text: str):
    path = write(tmp_path, text, "calibration.toml")
    with pytest.raises(ContractError, match="calibration"):
        read_calibration(path)


def test_the_documented_example_is_a_valid_requirement(tmp_path: Path):
    from warehouse import contract

    example = "\n".join(
        line[4:]
        for line in (contract.__doc__ or "").splitlines()
        if line.startswith("    ") and line[4:5].strip()
    )
    assert tomllib.loads(example)["claim"][0]["id"] == "1.3"
    (claim,) = read_claims(write(tmp_path, example))
    assert claim.requirements[0].cases == ("train", "validation", "heldout")


def test_limits_stand_in_the_contract_only():
    """A tolerance anywhere else would be a second, unreviewed limit."""
    project = FOLDER.parent.parent
    found = [
        str(path.relative_to(project))
        for folder in ("model", "tasks", "flows", "warehouse")
        for path in (project / folder).rglob("*.py")
        if "rtol=" in path.read_text(encoding="utf-8")
    ]
    assert found == []
