"""How the anchor is made."""

from __future__ import annotations

from dataclasses import dataclass

from ._refusals import check_text, invalid

__all__ = ["ANCHOR_METHODS", "AnchorRecipe"]

ANCHOR_METHODS = ("smote", "uniform", "gaussian", "sample")


@dataclass(frozen=True, kw_only=True)
class AnchorRecipe:
    """How the owner makes the anchor from public rows.

    Attributes
    ----------
    method : {"smote", "uniform", "gaussian", "sample"}
        See the samplers of `datacollab.anchor`.
    n_rows : int
        The rows of the anchor.
    source : str
        Where the public rows come from, in words.

    Raises
    ------
    ExchangeError
        When the method is unknown, or there are too few rows.
    """

    method: str = "smote"
    n_rows: int = 1000
    source: str = ""

    def __post_init__(self) -> None:
        if self.method not in ANCHOR_METHODS:
            raise invalid("[anchor], method", f"{self.method!r}; one of {', '.join(ANCHOR_METHODS)} is wanted.")
        if self.n_rows < 2:
            raise invalid("[anchor], n_rows", f"{self.n_rows}; at least 2 are wanted.")
        check_text("[anchor], source", self.source, most=500, empty=True)
