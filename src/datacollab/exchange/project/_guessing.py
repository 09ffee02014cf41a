"""What somebody would have to guess of an anchor, by how it was made."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Guessing", "guessing"]

GENERATOR_BITS = 128
"""Of the operating system's randomness in the generator that anchors are drawn by."""


@dataclass(frozen=True, kw_only=True)
class Guessing:
    """How hard an anchor is to guess; a guess can be tested against a share.

    Attributes
    ----------
    level : {"ok", "warning"}
    bits : float
        Of a row, for whoever has the public table and knows the recipe, but at most those of the generator.
    sentence : str
    """

    level: str
    bits: float
    sentence: str


def guessing(method: str, *, n_public: int | None = None, n_features: int = 1) -> Guessing:
    """What protects an anchor by one of the recipes, or of rows that somebody gave.

    Linear maps are told by as many rows as the matrix has columns, and one; with another one a guess is tested.  Bits
    are those of one row, because rows of a known table need not be guessed together: they can be matched one after
    another.  "ok" says that trying out is hopeless, not that nobody can compute anything.

    Parameters
    ----------
    method : {"smote", "uniform", "gaussian", "sample", "given"}
    n_public : int, optional
        Rows of the public table; None where it is not known yet.
    n_features : int, default=1
        Columns of the matrix.

    Examples
    --------
    >>> guessing("sample", n_public=1024).bits
    10.0
    >>> guessing("uniform", n_features=2).level
    'ok'
    """
    if method == "given":
        return Guessing(level="warning", bits=0.0, sentence="Whoever has the table has the anchor: keep it secret.")
    if method == "sample":
        bits = math.log2(n_public) if n_public else 0.0
        size, told = (f"{n_public} ", f", {bits:.0f} bits") if n_public else ("", "")
        return Guessing(
            level="warning",
            bits=bits,
            sentence=f"Each row is one of the {size}public rows{told}: keep from the analyst "
            "which table that is, or agree on another method.",
        )
    if method == "smote":
        # Where between two rows of the table it lies is drawn with 53 bits.
        bits = min(GENERATOR_BITS, 53 + (math.log2(n_public) if n_public else 0.0))
        return Guessing(
            level="ok",
            bits=bits,
            sentence=f"Each row lies at a random place between two public rows, {bits:.0f} bits; the table gives the "
            "lines away, not the places.",
        )
    bits = float(min(GENERATOR_BITS, 53 * n_features))
    return Guessing(
        level="ok", bits=bits, sentence=f"Each number is drawn anew, {bits:.0f} bits a row; no table gives it away."
    )
