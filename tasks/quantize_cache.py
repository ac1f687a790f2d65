"""The stage that runs the cache under every policy and measures what it keeps."""

from model.config import CacheConfig, ModelConfig, to_dict
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.inference import (
    CacheArray,
    LogitError,
    PolicyArray,
    PrecisionPolicy,
)
from warehouse.store import Execution


@stage(
    programs=("model.programs.quantize_cache",),
    writes=(
        Measurement,
        Comparison,
        Refusal,
        CacheArray,
        LogitError,
        PrecisionPolicy,
        PolicyArray,
    ),
)
def quantize_cache(
    work: Work,
    tokens: Execution,
    trained: Execution,
    model: ModelConfig,
    cache: CacheConfig,
) -> None:
    """Holds cached decoding against the full model and storage against NumPy.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training, whose parameters are used.
        model: Shape of the model.
        cache: Which lengths and documents are visited.
    """
    files = work.fetch(tokens, "tokens.npz", "corpus.json")
    parameters = work.fetch(trained, "parameters.npz")["parameters.npz"]

    work.run(
        "model.programs.quantize_cache",
        {
            "tokens": files["tokens.npz"],
            "corpus": files["corpus.json"],
            "parameters": parameters,
            "model": to_dict(model),
            "cache": to_dict(cache),
        },
    )
