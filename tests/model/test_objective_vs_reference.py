"""Token losses against a logarithm of a softmax in float64, target by target."""

import jax.numpy as jnp
import numpy as np

from model.objective import loss_sum_and_count, token_losses
from model.reference import objective as reference


def example() -> tuple[np.ndarray, np.ndarray]:
    """Logits up to 80, where a softmax without its shift overflows float32."""
    generator = np.random.default_rng(0)
    logits = generator.normal(0, 30, (3, 6, 259)).astype(np.float32)
    logits[0, 0] = 0.0
    targets = generator.integers(1, 259, (3, 6)).astype(np.int32)
    targets[1, 4:] = 0
    targets[2, 1:] = 0
    return logits, targets


def test_every_token_loss_is_that_of_the_reference() -> None:
    logits, targets = example()
    measured = np.asarray(token_losses(jnp.asarray(logits), jnp.asarray(targets)))
    for row in range(3):
        expected = reference.token_losses(logits[row], targets[row])
        scale = max(1.0, float(np.abs(expected).max()))
        apart = np.abs(measured[row] - expected).max() / scale
        assert apart < 1e-6, apart


def test_the_mean_is_that_of_the_reference_and_not_a_mean_of_means() -> None:
    logits, targets = example()
    total, count = loss_sum_and_count(jnp.asarray(logits), jnp.asarray(targets))
    expected = reference.mean_loss(logits, targets)
    assert abs(float(total) / int(count) - expected) / expected < 1e-6
    means = [
        reference.mean_loss(logits[i : i + 1], targets[i : i + 1]) for i in range(3)
    ]
    assert abs(np.mean(means) - expected) > 1e-2
