"""Whether a Prefect server can be used, asked before anything is started.

A wrong address, wrong credentials or a server of another version would fail somewhere
in the middle of a run, or lose a part of its records; here each is one sentence.
"""

import re
from typing import Any
from urllib.parse import urlsplit

from tasks.errors import StageError

SECONDS_TO_ANSWER = 10.0
UNAUTHORIZED = 401


class ServerFailed(StageError):
    """The Prefect server cannot be used."""


def shown(address: str) -> str:
    """Returns an address without a user and a password."""
    return re.sub(r"//[^/@]*@", "//", address)


def check_server(address: str) -> None:
    """Refuses a server that does not answer, does not know us, or is another release.

    Call it where Prefect's settings name the server.

    Args:
        address: Of its API, for the sentence.

    Raises:
        ServerFailed: It cannot be used.
    """
    if urlsplit(address).scheme not in ("http", "https"):
        raise ServerFailed(
            f"The Prefect server at {shown(address)} does not answer: an address is "
            "such as http://127.0.0.1:4200/api; correct or unset PREFECT_API_URL (or "
            "the profile that names it)."
        )
    refuse_other_version(address, _version(address))


def _version(address: str) -> str:
    import httpx
    from prefect.client.orchestration import get_client

    settings: dict[str, Any] = {"timeout": SECONDS_TO_ANSWER}
    try:
        with get_client(httpx_settings=settings, sync_client=True) as client:
            return str(client.api_version())
    except httpx.HTTPStatusError as error:
        if error.response.status_code == UNAUTHORIZED:
            raise ServerFailed(
                f"The Prefect server at {shown(address)} refuses these credentials; "
                "set PREFECT_API_AUTH_STRING (or the profile's) to its user:password."
            ) from None
    except (httpx.HTTPError, RuntimeError, ValueError):
        raise ServerFailed(
            f"The Prefect server at {shown(address)} does not answer; start it (one of "
            "`harness up` by another `harness up`), or unset PREFECT_API_URL (or the "
            "profile that names it) to run with a private one."
        ) from None
    raise ServerFailed(
        f"What answers at {shown(address)} is no Prefect server; its API's address "
        "mostly ends with /api."
    )


def refuse_other_version(address: str, version: str) -> None:
    """Refuses a server of another minor release than this Prefect.

    Raises:
        ServerFailed: It is older or newer.
    """
    import prefect

    ours = prefect.__version__
    theirs, mine = _release(version), _release(ours)
    if theirs == mine:
        return
    age = "older" if theirs < mine else "newer"
    raise ServerFailed(
        f"The Prefect server at {shown(address)} is {version}, {age} than the Prefect "
        f"{ours} here; use a server of {mine[0]}.{mine[1]}, or the release of "
        "text-harness that goes with it."
    )


def _release(version: str) -> tuple[int, int]:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
