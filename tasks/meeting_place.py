"""Where controllers of different hosts meet: controller 0 says it, the others ask.

A launcher cannot choose an address of another machine. So the host of controller 0
finds out under which of its addresses the Prefect server is reached, takes a free port
there, and publishes both as a variable of the server that bears the name of the gang.
"""

import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import VariableCreate

from tasks.errors import StageError

LOOK_SECONDS = 0.3


class NeverMet(StageError):
    """Controller 0 did not say where it is."""


def meeting_place(
    gang: str, process: int, seconds: float, ending: Callable[[], str]
) -> str:
    """Returns the address of controller 0, which publishes it first.

    Args:
        gang: Nonce of the gang.
        process: Number of this controller.
        seconds: How long the others wait for it.
        ending: Says why nobody shall wait any more; empty as long as they shall.

    Raises:
        NeverMet: It was not published in time.
    """
    with get_client(sync_client=True) as client:
        if process == 0:
            address = _own_address(str(client.api_url))
            client.create_variable(VariableCreate(name=_name(gang), value=address))
            return address
        until = time.monotonic() + seconds
        while time.monotonic() < until and not ending():
            found = client.read_variable_by_name(_name(gang))
            if found is not None:
                return str(found.value)
            time.sleep(LOOK_SECONDS)
    if why := ending():
        raise NeverMet(f"Controller {process} {why}.")
    raise NeverMet(
        f"Controller 0 did not publish its address within {seconds:g} s; its host has "
        "most likely not started it."
    )


def forget_meeting_place(client: SyncPrefectClient, gang: str) -> None:
    """Removes what controller 0 of a gang has published, if it has."""
    if client.read_variable_by_name(_name(gang)) is not None:
        client.delete_variable_by_name(_name(gang))


def _name(gang: str) -> str:
    return f"text-harness-gang-{gang}"


def _own_address(server: str) -> str:
    """Returns a free port of the address from which this host reaches the server."""
    parts = urlsplit(server)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname or "127.0.0.1", port))  # sends nothing
        host = probe.getsockname()[0]
    with socket.socket() as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"
