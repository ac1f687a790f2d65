"""A flow is asked the same things, in the same words, from page, API and shell."""

import dataclasses
import json
from typing import get_type_hints

import pytest
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import ValidationError, validate

from flows.certify import certify
from flows.drill import drill
from flows.parameters import PresetName, Settings, checked, overrides_of
from flows.qualify import qualify
from model.config import RunConfig, setting_paths
from model.limits import PLATFORMS
from model.presets import PRESETS, fixture, override, preset
from model.refusal import Refused

FLOWS = [qualify, certify, drill]


def _properties(schema):
    """Yields dotted path and schema of every single setting of a form."""

    def walk(group, path):
        for name, part in group["properties"].items():
            here = f"{path}.{name}" if path else name
            if "$ref" in part:
                inner = schema["definitions"][part["$ref"].rpartition("/")[2]]
                yield from walk(inner, here)
            else:
                yield here, part

    yield from walk(schema["definitions"]["Settings"], "")


@pytest.fixture(scope="module")
def schema():
    return parameter_schema(qualify.fn).model_dump()


def test_the_form_has_a_field_for_every_setting_and_no_other(schema):
    assert [path for path, _ in _properties(schema)] == list(setting_paths(fixture()))


def test_every_field_says_what_it_means_and_what_the_presets_say(schema):
    for path, part in _properties(schema):
        assert part["description"].count(".") >= 2, path
        assert " Preset: " in part["description"], path
    fields = dict(_properties(schema))
    assert fields["evaluate.future_positions"]["description"].endswith(
        "0 means every one. Preset: 0; prose: 8."
    )


def test_every_field_of_the_configuration_has_one_sentence(schema):
    from warehouse.schema import field_documentation

    def walk(kind):
        sentences = field_documentation(kind)
        for name, hint in get_type_hints(kind).items():
            assert sentences[name].endswith("."), (kind, name)
            if dataclasses.is_dataclass(hint):
                walk(hint)

    walk(RunConfig)


def test_limits_and_closed_lists_stand_in_the_form(schema):
    fields = dict(_properties(schema))
    assert fields["train.updates"]["exclusiveMinimum"] == 0
    assert fields["train.order_seed"]["exclusiveMaximum"] == 2**32
    assert fields["model.context_tokens"]["minimum"] == 3
    assert fields["interrupt.points"]["items"] == {"type": "integer", "minimum": 0}
    assert fields["export.platforms"]["items"]["enum"] == list(PLATFORMS)
    assert fields["target.platform"]["enum"] == ["tpu", "gpu"]
    assert "uniqueItems" not in fields["target.platform"]
    assert schema["properties"]["preset_name"]["enum"] == list(PRESETS)
    proofs = parameter_schema(certify.fn).properties["proof"]["enum"]
    assert proofs == ["recovery", "crash"]


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_no_field_asks_which_of_two_kinds_a_value_is_of(flow):
    assert "anyOf" not in json.dumps(parameter_schema(flow.fn).model_dump())


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_meets_the_limits_of_the_form(name, schema):
    """A limit in the form that the configuration does not know would refuse presets."""
    values = {
        group.name: dataclasses.asdict(getattr(preset(name), group.name))
        for group in dataclasses.fields(RunConfig)
        if group.name != "preset"
    }
    given = json.loads(json.dumps({"preset_name": name, "settings": values}))
    assert validate(given, schema, raise_on_error=True) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"train": {"updates": 0}}, "train.updates'. Failure reason: 0 is less than"),
        ({"export": {"platforms": ["vax"]}}, "'vax' is not one of ['cpu', 'cuda'"),
        (
            {"train": {"updates": "many"}},
            "train.updates'. Failure reason: 'many' is not",
        ),
        ({"target": {"platform": "cpu"}}, "'cpu' is not one of ['tpu', 'gpu'"),
        ({"trian": {}}, "'trian' was unexpected"),
    ],
)
def test_the_server_refuses_what_has_no_meaning_and_says_where(settings, words, schema):
    with pytest.raises(ValidationError) as refused:
        validate({"settings": settings}, schema, raise_on_error=True)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "assignments",
    [
        [],
        ["train.updates=60"],
        ["interrupt.points=3,5,6", "profile.prompt=a=b", "model.dropout_rate=0"],
        ["export.platforms=cpu", 'export.prompts=["a,b", "3"]', "export.prompts=[]"],
        ["train.optimizer.learning_rate=4e-3", "target.platform=true"],
        ["train.learning_rate=4e-3"],
    ],
)
def test_settings_survive_the_way_from_the_command_line_through_the_form(assignments):
    from model.settings import override as unlimited

    settings = Settings.from_overrides(assignments)
    page = json.loads(json.dumps(settings.model_dump(mode="json")))
    again = overrides_of(Settings.from_values(page))
    assert unlimited(fixture(), again) == unlimited(fixture(), assignments)


def test_a_run_shows_the_settings_that_were_given_and_no_other():
    settings = Settings.from_values({"train": {"updates": 5, "optimizer": None}})
    assert qualify.serialize_parameters({"settings": settings})["settings"] == {
        "train": {"updates": 5}
    }


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"preset_name": "fixure"}, "did you mean 'fixture'?"),
        ({"preset_name": 3}, "'preset_name' is 3; allowed is one of fixture, fixture"),
        ({"manifest": 4}, "'manifest' is 4; allowed is a text, or nothing"),
        ({"is_fresh": "yes"}, "'is_fresh' is 'yes'; allowed is true or false"),
        ({"settings": "x"}, "is 'x', which is not an object of settings by name"),
        ({"settings": {"train": 3}}, "'train' is 3, which is not an object"),
        (
            {"settings": {"trian": {}}},
            "'trian' is unknown in the configuration; did yo",
        ),
        ({"settings": {"train": {"updtes": 1}}}, "did you mean 'train.updates'?"),
        ({"settings": {"train": {"updates": "6"}}}, "'train.updates' is '6', which is"),
        ({"settings": {"train": {"updates": True}}}, "is not a whole number"),
        ({"settings": {"preset": "prose"}}, "choose the preset itself"),
    ],
)
def test_a_parameter_of_the_wrong_type_is_refused_in_one_sentence(asked, words):
    with pytest.raises(Refused) as refused:
        checked(qualify.fn.__wrapped__, asked)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unset_field_is_left_to_the_preset():
    asked = {"preset_name": "prose", "manifest": None, "settings": {"train": None}}
    given = checked(qualify.fn.__wrapped__, asked)
    assert overrides_of(given["settings"]) == []
    assert override(preset("prose"), overrides_of(given["settings"])) == preset("prose")


def test_what_an_untouched_form_sends_is_taken_by_server_and_flow(schema):
    """A default of null would be sent by the form and refused by the server."""
    sent = {
        name: part["default"]
        for name, part in schema["properties"].items()
        if "default" in part
    }
    assert sent["manifest"] == "" and sent["settings"] == {}
    assert validate(sent, schema, raise_on_error=True) == []
    given = checked(qualify.fn.__wrapped__, sent)
    assert given["manifest"] is None
    assert overrides_of(given["settings"]) == []


def test_the_names_of_presets_are_those_that_exist():
    assert set(PresetName.__args__) == set(PRESETS)


@pytest.mark.usefixtures("prefect_server")
def test_a_flow_that_is_asked_nonsense_fails_with_the_sentence_as_its_state(tmp_path):
    state = qualify(settings={"train": {"updates": "six"}}, return_state=True)
    assert state.is_failed()
    assert state.message == (
        "setting 'train.updates' is 'six', which is not a whole number; "
        "give a whole number"
    )
    with pytest.raises(Refused, match="'six'"):
        state.result()


def test_the_command_line_lists_every_setting_with_the_words_of_the_form(
    harness, schema
):
    listed = json.loads(harness("settings", "--preset", "prose", "--json").stdout)
    fields = dict(_properties(schema))
    assert [row["setting"] for row in listed] == list(fields)
    for row in listed:
        assert fields[row["setting"]]["description"].startswith(row["meaning"])
    by_path = {row["setting"]: row for row in listed}
    assert by_path["model.context_tokens"]["value"] == 256
    assert by_path["train.order_seed"]["allowed"] == "0 or more, below 2**32"
    assert by_path["export.platforms"]["allowed"] == "of cpu, cuda, rocm, tpu"
    wrong = harness("settings", "trian")
    assert wrong.returncode == 2
    assert "Did you mean 'train'?" in wrong.stderr


def test_an_accelerator_that_nobody_knows_is_refused_before_anything_runs(
    prefect_server, tmp_path, monkeypatch
):
    from flows.parameters import Settings
    from flows.target import target

    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path / "evidence"))
    settings = Settings.from_overrides(["target.accelerator=v5litepod17"])
    state = target(settings=settings, return_state=True)
    assert state.is_failed()
    assert "accelerator 'v5litepod17'" in state.message
    assert "v5litepod-16" in state.message
    assert not (tmp_path / "evidence").exists()
