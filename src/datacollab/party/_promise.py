"""What a defence promises, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FEATURES_OF_A_ROW", "Promise"]

FEATURES_OF_A_ROW = (
    "if the features of one row were replaced by any others, with all other rows, all targets and the number of rows "
    "unchanged",
    "Labels (targets) and row counts are released exactly and are not covered.",
)


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Differential privacy by a Gaussian mechanism.

    Attributes
    ----------
    epsilon, delta : float
    change : str
        Which change of the private table can hardly be noticed: a clause that begins with "if".
    not_covered : str
        What is released as it is, in a sentence.
    clip, noise : float or None
        Where all rows have the same: how long a row may be, and the standard deviation of the noise.
    """

    epsilon: float
    delta: float
    change: str = FEATURES_OF_A_ROW[0]
    not_covered: str = FEATURES_OF_A_ROW[1]
    clip: float | None = None
    noise: float | None = None
