"""A run's subject names what its verdicts are about, and nothing else."""

from dataclasses import replace

import pytest

from flows.run_record import RecordedRun, StageFailed, Subject
from model.presets import fixture, override, prose
from tasks.corpus_files import CorpusFiles, corpus_files
from warehouse.store import Store

AT = "2026-01-02T03:04:05.000000006Z"


@pytest.fixture(scope="module")
def subject():
    from flows.qualify import STAGES

    return Subject(
        flow="qualify",
        config=fixture(),
        corpus=corpus_files(None),
        runtime={"jax": "1"},
        stages=STAGES,
    )


def test_two_runs_of_one_subject_have_one_subject_and_two_names(subject):
    one, other = subject.start(), subject.start()
    assert one.subject == other.subject
    assert one.run_id != other.run_id


@pytest.mark.parametrize(
    ("change", "component"),
    [
        ({"config": override(fixture(), ["train.updates=299"])}, "configuration"),
        ({"runtime": {"jax": "2"}}, "runtime"),
        ({"corpus": CorpusFiles(path="/p", sha256="0" * 64)}, "data"),
        ({"stages": ()}, "system"),
    ],
)
def test_each_part_changes_its_own_component(change, component, subject):
    before = subject.start().components
    after = replace(subject, **change).start().components
    assert [name for name in before if before[name] != after[name]] == [component]


def test_a_proof_and_a_whole_run_are_about_one_subject(subject):
    """Else no verdict could rest on both, and every proof would read as missing."""
    from flows.proofs import PROOFS, proof_stages
    from flows.qualify import STAGES

    whole = replace(subject, beside=proof_stages()).start()
    proof = replace(
        subject,
        flow="certify",
        stages=(*STAGES[:2], *(proof.stage for proof in PROOFS["crash"])),
        beside=(*STAGES, *proof_stages()),
    )
    assert proof.start().components == whole.components
    without = replace(proof, beside=STAGES)
    assert without.start().components["system"] != whole.components["system"]


def test_a_stage_that_tries_other_systems_is_no_part_of_the_subject(subject):
    from tasks.drill_system import drill_system

    tried = replace(subject, stages=(*subject.stages, drill_system))
    apart = replace(tried, apart=(drill_system,))
    assert tried.modules() == tried.sources() == apart.sources()
    assert apart.modules() == subject.modules() != tried.modules()


def test_every_proof_is_a_stage_called_like_its_command():
    from flows.proofs import PROOFS

    names = {name: proofs[0].stage.definition.name for name, proofs in PROOFS.items()}
    assert names == {"recovery": "certify_recovery", "crash": "certify_crash"}


def test_the_proof_of_recovery_drills_its_own_comparison():
    from flows.proofs import DRILL_OF_RECOVERY, PROOFS, proof_stages

    assert DRILL_OF_RECOVERY in PROOFS["recovery"]
    stages = proof_stages()
    # three proofs, two rehearsals, and what a target does and has left
    assert len(stages) == len(set(stages)) == 7
    assert stages[-1].definition.name == "qualify_target"


def test_only_an_unchanged_preset_on_its_own_corpus_is_declared(subject):
    assert subject.start().is_declared
    changed = override(fixture(), ["train.updates=299"])
    assert not replace(subject, config=changed).start().is_declared
    elsewhere = CorpusFiles(path="/p", sha256="0" * 64)
    assert not replace(subject, corpus=elsewhere).start().is_declared
    assert replace(subject, config=prose()).start().is_declared


def test_the_place_of_the_corpus_is_no_part_of_the_subject(subject):
    moved = replace(subject.corpus, path="/somewhere/else.json")
    assert replace(subject, corpus=moved).start().subject == subject.start().subject


def test_the_flow_lists_every_stage_once_and_in_the_order_of_its_calls(project):
    from flows.qualify import STAGES

    names = [stage.definition.name for stage in STAGES]
    assert len(set(names)) == 9
    source = (project / "flows" / "qualify.py").read_text()
    calls = [source.index(f"{name}.submit(") for name in names]
    assert calls == sorted(calls)


def test_every_stage_names_programs_that_exist_and_a_key_of_its_own(project):
    from flows.qualify import STAGES
    from tasks.source_closure import source_closure

    closures = {}
    for stage in STAGES:
        definition = stage.definition
        closure = source_closure(definition.module, *definition.programs)
        closures[definition.name] = dict(closure.modules)
        assert definition.module == f"tasks.{definition.name}"
    importing = {name for name in closures if "model.cache" in closures[name]}
    assert "quantize_cache" in importing
    assert not importing & {"tokenize_corpus", "train_model", "interrupt_training"}


def test_what_another_source_computed_does_not_count_for_the_subject(subject, tmp_path):
    """Source edited between the start of a run and a stage makes two systems."""
    store = Store(tmp_path / "evidence")
    run = RecordedRun(store, subject)
    sources = {f"source:{name}": value for name, value in subject.modules().items()}
    times = {"started_at": AT, "finished_at": AT, "host": "here", "reason": "a test"}
    same, other = (
        store.commit(
            stage="train_model",
            key=key * 64,
            components=components,
            artifacts=[],
            records=[],
            **times,
        )
        for key, components in (
            ("a", sources),
            ("b", sources | {"source:model.adam": "0" * 64}),
        )
    )
    run._refuse_another_system(same)
    with pytest.raises(StageFailed, match=r"model\.adam was changed before"):
        run._refuse_another_system(other)


@pytest.mark.parametrize("given", [["3,5,6"], ["3", "5", "6"], ["3,5", "6"]])
def test_points_of_interruption_may_be_a_list_or_several(given, monkeypatch, tmp_path):
    import flows.start_flow
    from flows.command_line import app

    asked = []

    def run_flow(name, **parameters):
        asked.append((name, parameters))
        raise KeyboardInterrupt

    monkeypatch.setattr(flows.start_flow, "run_flow", run_flow)
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        app(["run", "--interrupt-at", *given, "--root", str(tmp_path / "evidence")])
    ((name, parameters),) = asked
    assert (name, parameters["preset_name"]) == ("qualify", "fixture")
    assert parameters["overrides"] == ["interrupt.points=3,5,6"]


def test_a_stage_of_another_implementation_counts_for_no_run(subject, tmp_path):
    """Nor one that ran the built-in system, whatever its own source is."""
    file = tmp_path / "mine.py"
    file.write_text("def encode(data):\n    return data\n")
    about = replace(subject, system={"file": str(file)})
    assert about.start().subject != subject.start().subject

    store = Store(tmp_path / "store")
    run = RecordedRun(store, about)
    held = {f"implementation:{file.name}": about.modules()["implementation:mine.py"]}
    made = {"key": "0" * 64, "artifacts": [], "records": [], "reason": "asked"}
    when = {"started_at": AT, "finished_at": AT, "host": "here"}
    theirs = store.commit(stage="train_model", components=held, **made, **when)
    run._refuse_another_system(theirs)
    built_in = store.commit(stage="train_model", components={}, **made, **when)
    with pytest.raises(StageFailed, match=r"the built-in system where .* mine\.py"):
        run._refuse_another_system(built_in)


def test_a_run_of_a_user_s_file_names_it_whatever_stands_in_it(subject, tmp_path):
    """So that it meets the baseline of that file, and not of the built-in system."""
    assert "implementation" not in subject.start().components
    file = tmp_path / "my_model.py"
    own = replace(subject, system={"file": str(file)})
    started = []
    for text in ("def encode(data): ...", "def encode(data): return data"):
        file.write_text(text)
        started.append(own.start())
    assert {run.components["implementation"] for run in started} == {"my_model.py"}
    assert started[0].subject != started[1].subject


def test_every_stage_of_a_run_is_asked_about_the_same_system(project):
    """One stage without it would be about the built-in one."""
    source = (project / "flows" / "qualify.py").read_text("utf-8")
    assert source.count(".submit(") == source.count("**about") == 9
