"""What the hosts of a slice left, judged: the whole is accepted, each fault is found.

Two CPU hosts have really made the protocol, and their result is held against the real
reference. No slice was at hand: for the verdicts it is dressed up as one of TPUs, says
so, and one controller of it is spoilt at a time.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows import target_hosts
from flows.reading import open_run
from flows.target_subject import target_subject
from model.checks.slice_result import SliceJudge
from model.config import to_dict
from model.presets import fixture, preset
from model.programs.judge_target import judged_rows
from model.refusal import Refused
from model.target_result import GANGS, part, read_result
from model.target_signs import SIGNS
from tasks.accelerators import accelerator_of, known_accelerator
from tasks.rehearsal_on_hosts import STEPS
from tasks.target_challenge import code_sha256
from tasks.target_results import TargetResult, open_result
from tests.slice_results import (
    HOSTS,
    SOLD,
    StandIn,
    dressed_slice,
    observe,
    observed_host,
    places,
)
from tests.spoilt_slices import SPOILT
from tests.store_maker import StoreMaker
from tests.synthetic_targets import IMPLIED
from tests.target_results import changing, manifest_of, reseal
from warehouse.contract import read_contract
from warehouse.load import build_warehouse, needed_for
from warehouse.nonces import remember_drawn
from warehouse.reading import read_store
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.targets import (
    TargetAccelerator,
    TargetAnswer,
    TargetDevice,
    TargetSign,
    TargetTiming,
)
from warehouse.schema import record_from
from warehouse.store import Store

pytestmark = pytest.mark.timeout(1200)
TRAINED, RESTARTED = GANGS
ASKED = ("verdicts", "target_ladder", "target_timings", "stg_target_timings")
CLASSES = (
    *(Measurement, Comparison, TargetAnswer, TargetSign),
    *(TargetDevice, TargetTiming, TargetAccelerator),
)


# --- what really ran ---


def test_every_controller_made_every_step_in_the_order_of_the_protocol(
    rehearsed_on_hosts: Path,
) -> None:
    for gang, number in places():
        own = rehearsed_on_hosts / part(gang, number)
        events = json.loads((own / "end.json").read_text())["events"]
        told = [each["step"] for each in events if each.get("event") == "step"]
        kinds = [each["event"] for each in events]
        # the last step of the first gang is the one that a controller is killed in
        owed = STEPS[gang] if gang == RESTARTED else STEPS[gang][:-1]
        assert told == list(owed)
        assert kinds.index("answered") < kinds.index("step") < kinds.index("update")


def test_what_hosts_computed_is_taken_in_and_agrees_with_the_reference(
    rehearsed_on_hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the artifact to the ladder; numbers are those of the CPU hosts.

    The guard against synthetic results is lifted here, and only here.
    """
    folder = dressed_slice(rehearsed_on_hosts, tmp_path / "dressed")
    result = open_result(folder)
    monkeypatch.setattr(TargetResult, "require_target", lambda self: None)
    root = tmp_path / "evidence"
    monkeypatch.setenv("HARNESS_ROOT", str(root))
    subject = target_subject("target", result, preset(result.manifest["preset"]))
    own = subject.start().components
    made = StoreMaker(Store(root))
    row = Measurement(claim="5.6", measure="target_steps", value_count=1, unit="steps")
    made.execute("train_model", [row], artifacts=[folder / "parameters.npz"])
    made.execute("qualify_tpu", [row])
    made.run(
        "20260102-030405-aaaaaa",
        **{name: own[name] for name in ("system", "data")},
        preset=own["configuration"],
    )
    released = result.manifest["made_up_release"]
    assert target_hosts.released_at_home(root, subject) == released
    packed = shutil.make_archive(str(tmp_path / "target_result"), "tar", folder)
    visited = made.execute("train_on_target", [], artifacts=[Path(packed)])
    nonce = manifest_of(folder)["nonce"]
    remember_drawn(root, nonce, "2026-01-01T00:00:00.000000000Z")
    sold, name = known_accelerator("v5p-16"), result.manifest["preset"]
    state = target_hosts.taken_in(visited, sold, nonce, name)
    assert state.name == "Completed", state.message
    connection = open_run(root, state.data)
    assert ladder(connection) == {4: "accept", 5: "accept"}


def test_a_result_of_cpu_hosts_is_refused_under_every_name(
    rehearsed_on_hosts: Path, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="no target") as refused:
        open_result(rehearsed_on_hosts).require_target()
    assert refused.value.code == "platform_mismatch"
    renamed = tmp_path / "renamed"
    shutil.copytree(rehearsed_on_hosts, renamed)
    reseal(renamed, platform="tpu", accelerator="v5p-16", is_rehearsal=False)
    with pytest.raises(Refused, match="no target"):
        open_result(renamed).require_target()


# --- the rule, on a result that says that it was made up ---


@pytest.fixture(scope="module")
def reference(rehearsed_on_hosts: Path) -> StandIn:
    return StandIn(rehearsed_on_hosts)


@pytest.fixture
def result(rehearsed_on_hosts: Path, tmp_path: Path) -> Path:
    """A result that would be accepted if it were not synthetic."""
    return dressed_slice(rehearsed_on_hosts, tmp_path / "dressed")


Judged = Callable[..., Any]


@pytest.fixture
def judged(tmp_path: Path, reference: StandIn) -> Judged:
    """Judges a result as the import does; answers a connection to the evidence."""

    def judge(folder: Path, **asked: Any) -> Any:
        manifest = read_result(folder)
        request = {
            "nonce": manifest_of(folder)["nonce"],
            "code_sha256": code_sha256(),
            "accelerator": SOLD,
            "released_sha256": manifest["made_up_release"],
            "model": to_dict(fixture().model),
            "train": to_dict(fixture().train),
            **asked,
        }
        found = judged_rows(SliceJudge(folder, manifest, request, reference))  # type: ignore[arg-type]
        made = StoreMaker(Store(tmp_path / "store"))
        records = [
            record_from(kind, row) for kind in CLASSES for row in found[kind.TABLE]
        ]
        made.execute("qualify_target", records)
        made.run("run-1")
        contents = read_store(made.store.root, None)
        return build_warehouse(contents, read_contract(), needed=needed_for(ASKED))

    return judge


def verdicts(connection: Any) -> dict[str, str]:
    found = connection.execute(
        "select claim, verdict from verdicts where review_task = 5 "
        "and claim_number <= 5"
    ).fetchall()
    return {claim: verdict.partition(" (")[0] for claim, verdict in found}


def ladder(connection: Any) -> dict[int, str]:
    found = connection.execute(
        "select rung, verdict from target_ladder where platform = 'tpu' and rung > 3"
    ).fetchall()
    return dict(found)


def test_a_slice_with_everything_would_be_accepted(
    result: Path, judged: Judged
) -> None:
    """Synthetic: this is the rule at work, and no evidence of any target."""
    with pytest.raises(Refused, match="made up"):
        open_result(result).require_target()
    connection = judged(result)
    assert set(verdicts(connection).values()) == {"accept"}
    assert ladder(connection) == {4: "accept", 5: "accept"}
    shown = connection.execute("select work, samples from target_timings").fetchall()
    assert {samples for _, samples in shown} == {30 * HOSTS}


@pytest.mark.parametrize("gang", GANGS)
def test_a_sign_that_one_host_lacks_is_found_on_that_host(
    result: Path, reference: StandIn, gang: str
) -> None:
    for sign in SIGNS:
        observe(result, gang, 1, **observed_host(1, sign))
        manifest = manifest_of(result)
        asked = {"nonce": "", "code_sha256": "", "released_sha256": ""}
        asked |= {"accelerator": SOLD}
        asked |= {name: manifest[name] for name in ("model", "train")}
        judge = SliceJudge(result, manifest, asked, reference)  # type: ignore[arg-type]
        lacking = [
            row["case_name"]
            for row in judge.signs()
            if row["measure"] == "sign_missing" and row["value_count"]
        ]
        owed = {f"{name}/{gang}/controller-1" for name in IMPLIED.get(sign, {sign})}
        assert set(lacking) == owed


@pytest.mark.parametrize("fault", SPOILT)
def test_one_spoilt_controller_revises_the_slice(
    fault: str, result: Path, judged: Judged
) -> None:
    claims, spoil = SPOILT[fault]
    spoil(result)
    reseal(result)
    connection = judged(result)
    found = verdicts(connection)
    assert {claim for claim, each in found.items() if each == "revise"} == claims
    assert ladder(connection)[5] != "accept"
    # whatever it is that failed, nobody sees how fast it was
    assert connection.execute("select * from stg_target_timings").fetchone()
    assert connection.execute("select * from target_timings").fetchall() == []


def test_fewer_controllers_than_the_slice_has_hosts_are_not_the_slice(
    result: Path, judged: Judged
) -> None:
    """Whatever two hosts say of themselves: four were sold under that name."""
    found = verdicts(judged(result, accelerator={**SOLD, "hosts": 4}))
    assert found["5.2"] == "revise"
    with pytest.raises(Refused, match="2 hosts, and v5litepod-16 has 4"):
        accelerator_of("v5litepod-16", "tpu", 2)
    assert accelerator_of("v5p-16", "tpu", 2).hosts == 2


def test_without_a_nonce_that_was_given_out_no_answer_is_one(
    result: Path, judged: Judged
) -> None:
    assert verdicts(judged(result, nonce=""))["5.2"] == "not demonstrated"


def test_without_an_uncommitted_checkpoint_nothing_is_shown_of_the_choice(
    result: Path, judged: Judged
) -> None:
    written = manifest_of(result)["written"]
    reseal(result, written=dict.fromkeys(written, True))
    assert verdicts(judged(result))["5.5"] == "not demonstrated"


def test_hosts_under_different_runtimes_are_no_target(result: Path) -> None:
    reseal(result, is_synthetic=False)
    for gang, number in places():
        observed = result / part(gang, number) / "artifacts" / "observed.json"
        with changing(observed) as each:
            each["is_synthetic"] = False
    with changing(result / part(RESTARTED, 1) / "program.json") as program:
        program["runtime"]["jaxlib"] = "0.0.0"
    reseal(result)
    with pytest.raises(Refused, match=r"controllers \[1\] ran under another runtime"):
        open_result(result).require_target()
