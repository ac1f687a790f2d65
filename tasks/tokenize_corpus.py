"""The first stage: documents become token tables, and the splits are fixed."""

from model.config import ModelConfig, to_dict
from tasks.corpus_files import corpus_files
from tasks.errors import InputChanged
from tasks.stage import stage
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.corpus import Document, Split, TokenDiagramRow
from warehouse.records.refusals import RefusedPair


@stage(
    programs=("model.programs.tokenize_corpus",),
    writes=(
        *(Measurement, Comparison, Refusal, RefusedPair),
        *(Document, Split, TokenDiagramRow),
    ),
    not_in_key=("manifest_path",),
)
def tokenize_corpus(
    work: Work, manifest_path: str, manifest_sha256: str, model: ModelConfig
) -> None:
    """Tokenizes the corpus of a manifest; claims 1.1 to 1.6.

    Args:
        work: The working side of this execution.
        manifest_path: Where the manifest lies; not part of the stage's key.
        manifest_sha256: Digest of the manifest and of every file it lists.
        model: The model, for its context.
    """
    work.run(
        "model.programs.tokenize_corpus",
        {"manifest": manifest_path, "model": to_dict(model)},
    )

    # The key names what was there before; what was read must be the same.
    if corpus_files(manifest_path).sha256 != manifest_sha256:
        raise InputChanged(
            f"The corpus of {manifest_path!r} was changed while it was read; nothing "
            "of it was kept. Run again."
        )
