"""How long a serialised program is promised to load, counted by the calendar."""

from __future__ import annotations

# The date of the wheel of each JAX, as the package index shows it.
WHEEL_OF = {
    "0.9.2": "2026-03-18",
    "0.10.0": "2026-04-16",
    "0.10.2": "2026-06-17",
}
PROMISED_MONTHS = 6
MONTHS_OF_A_YEAR = 12


def guaranteed_until(jax_version: str) -> str | None:
    """Returns the day six months after a JAX was built (ISO).

    Returns:
        None for a JAX whose wheel is not known here.

    Source: jax.export documentation, compatibility guarantees.
    """
    if jax_version not in WHEEL_OF:
        return None
    year, month, day = map(int, WHEEL_OF[jax_version].split("-"))
    for _ in range(PROMISED_MONTHS):
        month += 1
        if month > MONTHS_OF_A_YEAR:
            year, month = year + 1, 1
    return f"{year}-{month:02d}-{day:02d}"
