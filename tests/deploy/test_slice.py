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
from tests.store_maker import StoreMaker
from tests.synthetic_targets import IMPLIED
from tests.target_results import change_arrays, changing, manifest_of, reseal, write
from warehouse.contract import read_contract
from warehouse.load import build_warehouse, needed_for
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
    subject = target_subject("target", result)
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
    state = target_hosts.taken_in(visited, known_accelerator("v5p-16"), nonce)
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
        judge = SliceJudge(result, manifest, asked, reference)  # type: ignore[arg-type]
        lacking = [
            row["case_name"]
            for row in judge.signs()
            if row["measure"] == "sign_missing" and row["value_count"]
        ]
        owed = {f"{name}/{gang}/controller-1" for name in IMPLIED.get(sign, {sign})}
        assert set(lacking) == owed


def _forget(folder: Path, gang: str, number: int) -> None:
    shutil.rmtree(folder / part(gang, number))


def _copy_first(folder: Path) -> None:
    """All that controller 0 left lies there for controller 1 too."""
    for gang in GANGS:
        shutil.rmtree(folder / part(gang, 1))
        shutil.copytree(folder / part(gang, 0), folder / part(gang, 1))


def _one_machine(folder: Path) -> None:
    for gang in GANGS:
        for name in ("observed.json", "answer.json"):
            _artifact(folder, gang, name, host=observed_host(0)["host"])


def _tie(folder: Path, **changes: Any) -> None:
    path = folder / part(TRAINED, 1) / "artifacts" / "observed.json"
    write(path, {**json.loads(path.read_text()), **changes})


def _change(folder: Path, gang: str, table: str, label: str, **changes: Any) -> None:
    """Changes the last row that controller 1 wrote about a training."""
    with changing(folder / part(gang, 1) / "records" / f"{table}.json") as rows:
        [row for row in rows if row["label"] == label][-1].update(changes)


def _restore(folder: Path, update: int | None) -> None:
    """Controller 1 goes on from another update, or begins anew."""
    with changing(folder / part(RESTARTED, 1) / "end.json") as end:
        kept = [each for each in end["events"] if each["event"] != "restored"]
        told = {"event": "restored", "update": update, "process": 1}
        end["events"] = [*kept, told] if update is not None else kept


def _ended(folder: Path, code: int, gang: str = TRAINED) -> None:
    with changing(folder / part(gang, 1) / "end.json") as end:
        end["return_code"] = code


def _artifact(folder: Path, gang: str, name: str, **changes: Any) -> None:
    with changing(folder / part(gang, 1) / "artifacts" / name) as value:
        value |= changes


def _shift(folder: Path, by: float) -> None:
    logits = folder / part(TRAINED, 1) / "artifacts" / "logits.npz"
    change_arrays(logits, lambda name, array: array + by * name.startswith("fp32"))


def _reseed(folder: Path) -> None:
    with changing(folder / "checkpoint.json") as checkpoint:
        checkpoint["identity"]["order_seed"] += 1


SPOILT: dict[str, tuple[set[str], Callable[[Path], Any]]] = {
    # one controller of two, each time
    "a sign is missing": (
        {"5.1"},
        lambda f: observe(f, RESTARTED, 1, **observed_host(1, "chips_on_bus")),
    ),
    "its workload ran on the CPU": (
        {"5.1"},
        lambda f: _artifact(f, RESTARTED, "trace.json", planes={"/host:CPU": {"x": 9}}),
    ),
    "it left no trace": (
        {"5.1"},
        lambda f: (f / part(RESTARTED, 1) / "artifacts" / "trace.json").unlink(),
    ),
    "it has no device of its own": (
        {"5.1"},
        lambda f: observe(f, TRAINED, 1, local_devices=[]),
    ),
    "it has a device less": (
        {"5.1"},
        lambda f: observe(
            f,
            *(TRAINED, 1),
            local_devices=[4, 5, 6],
            computed=observed_host(1)["computed"][:3],
        ),
    ),
    "its devices are those of the other": (
        {"5.1", "5.4"},
        lambda f: observe(
            f,
            *(RESTARTED, 1),
            local_devices=[0, 1, 2, 3],
            devices=[
                {**each, "process_index": 1 - each["process_index"]}
                for each in observed_host(1)["devices"]
            ],
        ),
    ),
    "its devices are of another generation": (
        {"5.1"},
        lambda f: observe(
            f,
            *(TRAINED, 1),
            devices=[
                {**each, "kind": "TPU v2"} for each in observed_host(1)["devices"]
            ],
        ),
    ),
    "its chips are of another generation": (
        {"5.1"},
        lambda f: observe(
            f,
            *(RESTARTED, 1),
            chips=[
                {**each, "device": "0x0027", "name": "v3"}
                for each in observed_host(1)["chips"]
            ],
        ),
    ),
    "it is a second process of one machine": ({"5.2"}, _one_machine),
    "it trained on the CPU after its probe": (
        {"5.2"},
        lambda f: _artifact(f, TRAINED, "answer.json", platform="cpu"),
    ),
    "another nonce": ({"5.2"}, lambda f: _tie(f, nonce="0" * 32)),
    "other code": ({"5.2"}, lambda f: _tie(f, code_sha256="0" * 64)),
    "other data": (
        {"5.4"},
        lambda f: _change(
            f, TRAINED, "controller_trainings", "split", tokens_sha256="0" * 64
        ),
    ),
    "other masks": (
        {"5.4"},
        lambda f: _change(
            f, TRAINED, "controller_updates", "split", targets_sha256="0" * 64
        ),
    ),
    "another release": (
        {"5.4"},
        lambda f: _artifact(
            f, RESTARTED, "agreed.json", about={"parameters": "0" * 64}
        ),
    ),
    "default precision": (
        {"5.4"},
        lambda f: observe(f, TRAINED, 1, matmul_precision="None"),
    ),
    "state on the CPU": (
        {"5.4"},
        lambda f: _artifact(f, RESTARTED, "placement.json", devices_of_state=["cpu:0"]),
    ),
    "its parameters part from the others'": (
        {"5.3"},
        lambda f: _change(
            f, TRAINED, "controller_updates", "collective", state_sha256="0" * 64
        ),
    ),
    "its repetition parts": (
        {"5.3"},
        lambda f: _change(
            f, RESTARTED, "controller_updates", "repeated split", state_sha256="0" * 64
        ),
    ),
    "its loss is that of TF32": (
        {"5.3"},
        lambda f: _change(f, TRAINED, "controller_updates", "split", loss_sum_nats=0.0),
    ),
    "its logits are those of TF32": ({"5.3"}, lambda f: _shift(f, 6.9e-3)),
    "what it resumed parts": (
        {"5.5"},
        lambda f: _change(
            f, RESTARTED, "controller_updates", "resumed same", state_sha256="0" * 64
        ),
    ),
    "it chose the uncommitted checkpoint": ({"5.5"}, lambda f: _restore(f, 6)),
    "it began anew": ({"5.5"}, lambda f: _restore(f, None)),
    "it ended by itself": ({"5.5"}, lambda f: _ended(f, 0)),
    "it crashed when it was restarted": (
        {"5.5"},
        lambda f: _ended(f, -6, RESTARTED),
    ),
    # what is about all of them
    "trained by another recipe": ({"5.4"}, _reseed),
    "it is not there": (
        {"5.1", "5.2", "5.3", "5.4", "5.5"},
        lambda f: [_forget(f, gang, 1) for gang in GANGS],
    ),
    "the files of one are copied for all": ({"5.1", "5.2", "5.4", "5.5"}, _copy_first),
}


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
