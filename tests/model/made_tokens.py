"""Made-up token tables: as of a corpus, and of any number of documents."""

import numpy as np


def token_table(documents: int) -> np.ndarray:
    """Returns padded documents of every length that fits, from one seed."""
    generator = np.random.default_rng(0)
    rows = np.zeros((documents, 13), dtype=np.int32)
    for row in rows:
        length = int(generator.integers(3, 14))
        row[:length] = generator.integers(100, 106, length)
        row[0], row[length - 1] = 1, 2
    return rows


def documents_of_letters() -> np.ndarray:
    """Eight documents of 1 to 5 letters, so that means of means are other means."""
    generator = np.random.default_rng(3)
    tokens = np.zeros((8, 7), dtype=np.int32)
    for row, length in enumerate((1, 5, 2, 5, 3, 1, 4, 5)):
        letters = generator.integers(100, 106, length)
        tokens[row, : length + 2] = [1, *letters, 2]
    return tokens
