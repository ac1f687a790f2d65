"""What lies in deploy/ is held against the code, against Prefect, and its schema.

No container engine is needed: the compose file is checked against the schema of the
specification, the recipe against the files that it copies.
"""

import importlib
import json
import re
import subprocess
import sys
from importlib.resources import files
from zoneinfo import ZoneInfo

import jsonschema
import prefect.settings
import pytest
import yaml
from prefect.client.schemas.schedules import CronSchedule

from flows.operator_deployments import declared_deployments
from flows.operator_settings import read_settings
from flows.parameters import checked
from tasks import hosts

SECRETS = {
    "PREFECT_SERVER_API_AUTH_STRING": "user:word",
    "PREFECT_SERVER_DATABASE_CONNECTION_URL": "postgresql+asyncpg://u:p@localhost/x",
}
FOR_OTHERS = {"DO_NOT_TRACK"}
HOST = ("controller", "host")
"""What a host runs of a gang: no run of ours, and as many at a time as hosts."""


@pytest.fixture(scope="module")
def deploy(project):
    return project / "deploy"


@pytest.fixture(scope="module")
def declared(deploy):
    return declared_deployments(deploy / "prefect.yaml")


@pytest.fixture(scope="module")
def entries(declared):
    return [each for each in declared if (each["flow"], each["name"]) != HOST]


def test_a_controller_goes_to_the_pool_of_hosts_and_waits_for_no_other(declared):
    (host,) = [each for each in declared if (each["flow"], each["name"]) == HOST]
    module, _, name = host["entrypoint"].partition(":")
    assert getattr(importlib.import_module(module), name).name == host["flow"]
    assert host["work_pool"]["name"] == hosts.POOL
    assert host["work_pool"]["job_variables"]["env"]
    assert "concurrency_limit" not in host and "schedules" not in host
    assert "/".join(HOST) == hosts.DEPLOYMENT


def test_every_deployment_starts_a_flow_with_parameters_that_it_takes(entries):
    names = set()
    for entry in entries:
        module, _, name = entry["entrypoint"].partition(":")
        flow = getattr(importlib.import_module(module), name)
        body = flow.fn.__wrapped__
        assert checked(body, entry["parameters"])
        assert flow.name == entry["flow"]
        names.add((flow.name, entry["name"]))
        with pytest.raises(Exception, match="nonsense"):
            checked(body, {"preset_name": "nonsense"})
    assert len(names) == len(entries) >= 4
    assert ("qualify", "default") in names


def test_every_schedule_can_be_told_apart_and_has_a_time_zone(entries):
    schedules = [s for entry in entries for s in entry.get("schedules") or []]
    assert len(schedules) >= 2
    for schedule in schedules:
        assert re.fullmatch("[a-z-]+", schedule["slug"])
        assert ZoneInfo(schedule["timezone"])
        assert CronSchedule(cron=schedule["cron"], timezone=schedule["timezone"])
        hour = schedule["cron"].split()[1]
        assert schedule["timezone"] == "UTC" or hour != "2", "an hour that is skipped"


def test_no_run_is_lost_to_a_limit_and_nothing_is_pulled(entries, deploy):
    document = yaml.safe_load((deploy / "prefect.yaml").read_text())
    assert document["pull"] == []
    assert document["prefect-version"] == prefect.__version__
    for entry in entries:
        limit = entry["concurrency_limit"]
        assert limit == {"limit": 1, "collision_strategy": "ENQUEUE"}
        assert entry["work_pool"]["name"] == "text-harness"
        assert entry["description"] and entry["tags"]


@pytest.mark.parametrize("name", ["laptop.env", "shared.env"])
def test_every_setting_is_one_that_prefect_reads(name, deploy, monkeypatch):
    for secret, value in SECRETS.items():
        monkeypatch.setenv(secret, value)
    settings = read_settings(deploy / name)
    unknown = [s for s in settings.keys() - FOR_OTHERS if not _is_setting(s)]
    assert unknown == []
    assert not _is_setting("PREFECT_SERVER_UI_API_ADDRESS")


def _is_setting(name: str) -> bool:
    try:
        return getattr(prefect.settings, name).name is not None
    except AttributeError:
        return False


@pytest.mark.parametrize("name", ["laptop.env", "shared.env"])
def test_the_settings_mean_to_prefect_what_the_file_says(name, deploy, monkeypatch):
    for secret, value in SECRETS.items():
        monkeypatch.setenv(secret, value)
    shown = subprocess.run(
        [
            *(sys.executable, "-c"),
            "from prefect.settings import get_current_settings as g; s = g().server;"
            "import json; print(json.dumps([s.analytics_enabled, s.api.host,"
            "s.ui.api_url, s.api.cors_allowed_origins, s.events.retention_period.days,"
            "sorted(s.services.db_vacuum.enabled_vacuum_types),"
            "s.services.db_vacuum.retention_period.days, s.ephemeral.enabled]))",
        ],
        env={"PATH": "", **read_settings(deploy / name)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    vacuum = ["events", "flow_runs", "orphans"]
    days = {"laptop.env": 90, "shared.env": 180}[name]
    origin = "http://127.0.0.1"
    assert json.loads(shown)[:7] == [
        *(False, "127.0.0.1", "/api", origin, 30, vacuum, days)
    ]
    if name == "shared.env":
        assert json.loads(shown)[7] is False


SECRET = re.compile("PASSWORD|AUTH|CONNECTION_URL")


def test_a_secret_has_a_name_here_and_its_value_elsewhere(deploy):
    lines = (deploy / "shared.env").read_text().splitlines()
    named = [line for line in lines if SECRET.search(line) and line[0] != "#"]
    assert sorted(named) == sorted(f"{name}=" for name in SECRETS)
    assert not SECRET.search((deploy / "laptop.env").read_text())
    services = yaml.safe_load((deploy / "compose.yaml").read_text())["services"]
    values = [
        value
        for service in services.values()
        for name, value in service["environment"].items()
        if SECRET.search(name)
    ]
    assert len(values) == 4
    assert all("${HARNESS_AUTH" in v or "${POSTGRES_PASSWORD" in v for v in values)


def test_the_compose_file_keeps_to_the_specification(deploy):
    resource = files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    schema = json.loads(resource.read_text())
    document = yaml.safe_load((deploy / "compose.yaml").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(document)] == []
    document["services"]["worker"]["comand"] = []
    assert list(validator.iter_errors(document)), "a misspelt key would be found"


def test_what_the_compose_file_names_exists(deploy):
    document = yaml.safe_load((deploy / "compose.yaml").read_text())
    services, volumes = document["services"], document["volumes"]
    for service in services.values():
        for waits_for in service.get("depends_on", {}):
            assert "healthcheck" in services[waits_for]
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in volumes
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")
        if "env_file" in service:
            assert (deploy / service["env_file"]).is_file()
        if "build" in service:
            context = (deploy / service["build"]["context"]).resolve()
            assert (context / service["build"]["dockerfile"]).is_file()


def test_the_recipe_copies_files_that_exist_and_that_the_engine_is_given(deploy):
    recipe = (deploy / "Dockerfile").read_text().replace("\\\n", " ")
    given = (deploy / "Dockerfile.dockerignore").read_text().splitlines()
    copied = []
    for words in map(str.split, recipe.splitlines()):
        if words[:1] == ["COPY"]:
            copied += [word for word in words[1:-1] if not word.startswith("--")]
    assert {"requirements.lock", "pyproject.toml", "flows", "deploy"} <= set(copied)
    for name in copied:
        assert (deploy.parent / name).exists(), name
        assert f"!{name}" in given, name
    commands = re.findall(r"^(?:RUN|CMD|COPY|FROM|ENV|USER|WORKDIR)\b", recipe, re.M)
    lines = [x for x in recipe.splitlines() if x and not x.startswith(("#", " "))]
    assert len(commands) == len(lines)
    assert recipe.index("USER harness") < recipe.index("CMD")


def test_the_files_are_installed_with_the_package(project, deploy):
    import tomllib

    declared = tomllib.loads((project / "pyproject.toml").read_text())
    patterns = declared["tool"]["setuptools"]["package-data"]["deploy"]
    missing = [
        path.name
        for path in deploy.iterdir()
        if path.is_file()
        and path.suffix != ".py"
        and not any(path.match(pattern) for pattern in patterns)
    ]
    assert missing == []
