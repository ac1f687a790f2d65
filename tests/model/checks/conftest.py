"""What the tests of checks share."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def compiled_anew() -> Iterator[None]:
    """A planted fault must reach programs that are compiled, and leave none behind."""
    jax.clear_caches()
    yield
    jax.clear_caches()
