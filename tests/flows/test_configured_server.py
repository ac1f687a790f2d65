"""A server is found wherever Prefect would find it, or what is wrong is said."""

import pytest

from flows import local_server
from flows.configured_server import configured_api_url
from flows.local_server import prefect_server
from flows.server_check import ServerFailed

PROFILES = (
    'active = "here"\n[profiles.here]\nPREFECT_API_URL = "http://profile/api"\n'
    '[profiles.there]\nPREFECT_API_URL = "http://there/api"\n'
)
NOWHERE = "http://127.0.0.1:9/api"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """The current folder and Prefect's home, both empty."""
    for name in ("API_URL", "PROFILE", "PROFILES_PATH"):
        monkeypatch.delenv(f"PREFECT_{name}", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_server(monkeypatch):
    def start():
        raise AssertionError("a private server was started")

    monkeypatch.setattr(local_server, "LocalServer", start)


def test_places_are_read_in_the_order_of_prefect(folder, monkeypatch):
    assert configured_api_url() is None
    (folder / "profiles.toml").write_text(PROFILES)
    assert configured_api_url() == "http://profile/api"
    monkeypatch.setenv("PREFECT_PROFILE", "there")
    assert configured_api_url() == "http://there/api"
    (folder / "pyproject.toml").write_text('[tool.prefect.api]\nurl = "http://py/api"')
    assert configured_api_url() == "http://py/api"
    (folder / "prefect.toml").write_text('[api]\nurl = "http://toml/api"')
    assert configured_api_url() == "http://toml/api"
    (folder / ".env").write_text("export prefect_api_url='http://dotenv/api'\n")
    assert configured_api_url() == "http://dotenv/api"
    monkeypatch.setenv("PREFECT_API_URL", "http://environment/api")
    assert configured_api_url() == "http://environment/api"
    monkeypatch.setenv("PREFECT_API_URL", "")
    assert configured_api_url() is None


def test_a_file_without_an_address_hides_no_other(folder):
    (folder / "profiles.toml").write_text(PROFILES)
    (folder / ".env").write_text("OTHER=1\n")
    (folder / "prefect.toml").write_text("[logging]\nlevel = 'INFO'\n")
    (folder / "pyproject.toml").write_text("[tool.ruff]\n")
    assert configured_api_url() == "http://profile/api"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (".env", "PREFECT_PROFILES_PATH=mine.toml"),
        ("prefect.toml", 'profiles_path = "mine.toml"'),
        ("pyproject.toml", '[tool.prefect]\nprofiles_path = "mine.toml"'),
    ],
)
def test_the_file_of_profiles_can_be_elsewhere(file, content, folder):
    (folder / "mine.toml").write_text(PROFILES)
    (folder / file).write_text(content)
    assert configured_api_url() == "http://profile/api"


@pytest.mark.parametrize("place", ["environment", "profiles.toml"])
@pytest.mark.parametrize("name", ["ephemeral", "local"])
def test_prefects_own_profiles_need_no_entry(name, place, folder, monkeypatch):
    if place == "environment":
        monkeypatch.setenv("PREFECT_PROFILE", name)
    else:
        (folder / place).write_text(f'active = "{name}"\n')
    assert configured_api_url() is None


def test_without_a_home_prefects_own_profiles_count(folder, monkeypatch):
    monkeypatch.delenv("PREFECT_HOME")
    monkeypatch.setenv("HOME", str(folder))
    assert configured_api_url() is None
    monkeypatch.setenv("PREFECT_PROFILE", "local")
    assert configured_api_url() == "http://127.0.0.1:4200/api"


def test_a_file_of_profiles_without_an_active_one_is_none(folder):
    (folder / "profiles.toml").write_text("")
    assert configured_api_url() is None


def test_a_configured_server_is_used_and_none_is_started(folder, no_server):
    (folder / "prefect.toml").write_text('[api]\nurl = "http://toml/api"')
    with prefect_server() as server:
        assert server is None


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("profiles.toml", b"not toml ["),
        ("profiles.toml", b"\xff"),
        ("prefect.toml", b"[api"),
        ("pyproject.toml", b"[tool"),
        (".env", b"PREFECT_API_URL=\xff"),
        ("profiles.toml", None),
    ],
)
def test_a_file_that_cannot_be_read_is_named(file, content, folder, no_server):
    if content is None:
        (folder / file).mkdir()
    else:
        (folder / file).write_bytes(content)
    with (
        pytest.raises(ServerFailed, match="cannot be read") as caught,
        prefect_server(),
    ):
        pass
    assert repr(str(folder / file)) in str(caught.value)


@pytest.mark.parametrize("file", ["profiles.toml", "prefect.toml", "pyproject.toml"])
def test_a_broken_file_is_named_beside_an_address(file, folder, monkeypatch):
    """Prefect would fail on it while it is imported, whatever names the server."""
    monkeypatch.setenv("PREFECT_API_URL", NOWHERE)
    (folder / file).write_text("not toml [")
    with pytest.raises(ServerFailed, match=file):
        configured_api_url()


@pytest.mark.parametrize("content", ["", PROFILES, None])
def test_a_profile_that_does_not_exist_is_named(
    content, folder, monkeypatch, no_server
):
    if content is not None:
        (folder / "profiles.toml").write_text(content)
    monkeypatch.setenv("PREFECT_PROFILE", "gone")
    with pytest.raises(ServerFailed, match=r"PREFECT_PROFILE names .*'gone'"):
        prefect_server().__enter__()


def test_an_active_profile_that_does_not_exist_is_named(folder, no_server):
    (folder / "profiles.toml").write_text('active = "gone"\n')
    with pytest.raises(ServerFailed, match=r"active names .*'gone'"):
        prefect_server().__enter__()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("profiles.toml", 'active = "gone"', "profile 'gone'"),
        ("profiles.toml", "not toml [", "cannot be read"),
        ("prefect.toml", f'[api]\nurl = "{NOWHERE}"', f"at {NOWHERE}"),
        ("pyproject.toml", f'[tool.prefect.api]\nurl = "{NOWHERE}"', f"at {NOWHERE}"),
        (".env", f"PREFECT_API_URL={NOWHERE}", f"at {NOWHERE}"),
    ],
)
def test_a_run_ends_with_one_sentence(file, content, said, folder, harness):
    """Prefect itself looks where we do: it does not reach the server that is named."""
    (folder / file).write_text(content)
    done = harness("run", "--root", folder / "evidence")
    assert done.returncode == 2, done.stderr
    (line,) = [x for x in done.stderr.splitlines() if x.startswith("harness: ")]
    assert said in line
    assert "Traceback" not in done.stderr
