"""What is measured, and what is wanted of it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Measured", "Wanted"]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One figure of one seed.

    Attributes
    ----------
    section : str
        Such as "survival".
    data : str
        Table, parties and rows, such as "whas500 5x50".
    method : str
        Such as "Local", "Local+Public", "meta", "Central", "DC PCA affine".
    measure : str
        Such as "C-index".
    seed : int
    value : float
    """

    section: str
    data: str
    method: str
    measure: str
    seed: int
    value: float


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the mean over seeds of one figure has to be.

    Attributes
    ----------
    section, data, method, measure : str
        Of the figure.
    at_least, at_most : float or None
        Bounds for its mean over seeds.
    beside : str or None
        Another method: the bounds are then for this method's mean less that one's.
    """

    section: str
    data: str
    method: str
    measure: str
    at_least: float | None = None
    at_most: float | None = None
    beside: str | None = None
