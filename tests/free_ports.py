"""Ports for servers of tests that nothing else takes meanwhile."""

import random
import socket

# Below those that a system gives to whoever connects, so that a server which ends and
# comes back finds its port as it left it.
PORTS = range(20_000, 30_000)
TRIES = 100


def free_port() -> int:
    """Returns a port of the loopback interface on which nothing listens."""
    for port in random.SystemRandom().sample(PORTS, TRIES):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"none of {TRIES} ports between {PORTS[0]} and {PORTS[-1]}")
