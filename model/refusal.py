"""Inputs that the system turns away, each with its own reason code.

A refusal is evidence like any number: claims ask that a certain input is refused
with a certain code, so the codes are one closed enumeration and the sentence for
people travels beside it.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum, auto, unique

# Refusals in one sentence; a file of fifty wrong arrays is one thing to its reader.
TOLD = 5


@unique
class ReasonCode(StrEnum):
    """Every reason for which the training system refuses an input."""

    # documents and their manifest
    DOCUMENT_OVERLONG = auto()
    DOCUMENT_EMPTY = auto()
    DOCUMENT_NOT_UTF8 = auto()
    DOCUMENT_MISSING = auto()
    DOCUMENT_UNREADABLE = auto()
    DOCUMENT_ALTERED = auto()
    DUPLICATE_DOCUMENT_ID = auto()
    DUPLICATE_CONTENT = auto()
    GROUP_IN_TWO_SPLITS = auto()
    CONTENT_IN_TWO_SPLITS = auto()
    MANIFEST_MISSING = auto()
    MANIFEST_UNREADABLE = auto()
    MANIFEST_MALFORMED = auto()
    MANIFEST_PATH_ESCAPES = auto()
    MANIFEST_UNKNOWN_FIELD = auto()
    UNKNOWN_SPLIT = auto()
    SPLIT_EMPTY = auto()

    # the settings that tokens were made under, each with a code of its own
    TOKENIZER_CHANGED = auto()
    TOKENIZER_NAME_CHANGED = auto()
    TOKENIZER_VERSION_CHANGED = auto()
    BYTE_OFFSET_CHANGED = auto()
    VOCABULARY_CHANGED = auto()
    PAD_TOKEN_CHANGED = auto()
    BEGIN_TOKEN_CHANGED = auto()
    END_TOKEN_CHANGED = auto()
    PREPROCESSING_CHANGED = auto()
    PREPROCESSING_VERSION_CHANGED = auto()
    NORMALIZATION_CHANGED = auto()
    ENCODING_CHANGED = auto()
    LAYOUT_CHANGED = auto()
    OVERLONG_CHANGED = auto()
    CONTEXT_CHANGED = auto()
    ROW_TOKENS_CHANGED = auto()

    # configuration and requests
    UNKNOWN_PRESET = auto()
    UNKNOWN_SETTING = auto()
    SETTING_INVALID = auto()
    REQUEST_MALFORMED = auto()

    # a user's own implementation
    IMPLEMENTATION_UNREADABLE = auto()
    IMPLEMENTATION_MISBEHAVED = auto()

    # tokens, targets and prompts
    TOKENS_MALFORMED = auto()
    TARGETS_DTYPE = auto()
    TARGETS_SHAPE = auto()
    TARGETS_RANGE = auto()
    PROMPT_OVERLONG = auto()
    CACHE_FULL = auto()

    # numbers that must not go on
    NON_FINITE_LOSS = auto()
    NON_FINITE_GRADIENT = auto()
    NON_FINITE_LOGITS = auto()

    # parameters, checkpoints and releases
    PARAMETERS_MISMATCH = auto()
    CHECKPOINT_ABSENT = auto()
    CHECKPOINT_UNCOMMITTED = auto()
    CHECKPOINT_NOT_WRITTEN = auto()
    CHECKPOINT_DAMAGED = auto()
    CHECKPOINT_TRUNCATED = auto()
    CHECKPOINT_CHECKSUM = auto()
    CHECKPOINT_PICKLED = auto()
    CHECKPOINT_ARRAY_MISSING = auto()
    CHECKPOINT_ARRAY_EXTRA = auto()
    CHECKPOINT_ARRAY_SHAPE = auto()
    CHECKPOINT_ARRAY_DTYPE = auto()
    CHECKPOINT_FORMAT_UNKNOWN = auto()
    CHECKPOINT_MISMATCH_DATA = auto()
    CHECKPOINT_MISMATCH_ORDER_SEED = auto()
    CHECKPOINT_MISMATCH_BATCH = auto()
    CHECKPOINT_MISMATCH_TOKENIZER = auto()
    CHECKPOINT_MISMATCH_ARCHITECTURE = auto()
    CHECKPOINT_MISMATCH_OPTIMIZER = auto()
    CHECKPOINT_MISMATCH_LEARNING_RATE = auto()
    CHECKPOINT_MISMATCH_BETA1 = auto()
    CHECKPOINT_MISMATCH_BETA2 = auto()
    CHECKPOINT_MISMATCH_EPSILON = auto()
    CHECKPOINT_MISMATCH_WARMUP_UPDATES = auto()
    CHECKPOINT_MISMATCH_DECAY_UPDATES = auto()
    CHECKPOINT_MISMATCH_FINAL_LEARNING_RATE_SHARE = auto()
    CHECKPOINT_MISMATCH_WEIGHT_DECAY = auto()
    CHECKPOINT_MISMATCH_FINAL_WEIGHT_DECAY = auto()
    CHECKPOINT_MISMATCH_WEIGHT_DECAY_RISE_AFTER = auto()
    CHECKPOINT_MISMATCH_WEIGHT_DECAY_RISE_UPDATES = auto()
    CHECKPOINT_MISMATCH_AVERAGE_DECAY = auto()
    CHECKPOINT_MISMATCH_POLICY = auto()
    CHECKPOINT_MISMATCH_NUMERICS = auto()
    CHECKPOINT_MISMATCH_JAXLIB = auto()
    CHECKPOINT_MISMATCH_XLA_FLAGS = auto()
    CHECKPOINT_MISMATCH_NPROC = auto()
    CHECKPOINT_MISMATCH_KEY_IMPLEMENTATION = auto()
    CHECKPOINT_MISMATCH_DROPOUT_SEED = auto()
    CHECKPOINT_MISMATCH_INITIALIZATION_SEED = auto()
    ARTIFACT_MISSING = auto()
    ARTIFACT_ALTERED = auto()
    ARTIFACT_METADATA_MISMATCH = auto()
    ENDPOINT_MISMATCH = auto()

    # where it runs
    PLATFORM_MISMATCH = auto()
    TARGET_ABSENT = auto()
    CODE_MISMATCH = auto()
    CONTROLLERS_APART = auto()


class Refused(Exception):
    """An input from outside that the system does not accept.

    Attributes:
        code: Why, from the closed list; of several things the first.
        message: One sentence: what failed, the value, where, what was allowed and
            what to do.
        fields: Path of each single thing that is wrong, such as ``optimizer.beta1``,
            every one of them and no other; empty where the input has no fields.
    """

    def __init__(
        self, code: ReasonCode, message: str, fields: Iterable[str] = ()
    ) -> None:
        super().__init__(message)
        self.code = ReasonCode(code)
        self.message = message
        self.fields = tuple(fields)


def joined(refusals: Sequence[Refused]) -> Refused:
    """Returns one refusal that says everything that several say, so that none hides.

    Args:
        refusals: At least one; the first gives the reason code. The sentence holds the
            first few, the fields hold all.
    """
    first = refusals[0]
    if len(refusals) == 1:
        return first
    parts = [first.message.removesuffix(".")]
    for refused in refusals[1:]:
        begin, rest = refused.message[:1], refused.message[1:]
        parts.append(begin.lower() + rest.removesuffix("."))
    sentence = "; besides, ".join(parts[:TOLD])
    if len(parts) > TOLD:
        sentence += f"; and {len(parts) - TOLD} more"
    end = "." if first.message.endswith(".") else ""
    fields = (field for refused in refusals for field in refused.fields)
    return Refused(first.code, f"{sentence}{end}", fields)
