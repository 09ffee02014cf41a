"""One experimental condition, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

from datacollab.party import OBFUSCATORS

_CHOICES = {
    "split": ("iid", "stratified", "label-skew"),
    "obfuscator": OBFUSCATORS,
    "out_of_sample": ("auto", "row-wise", "umap"),
    "kernel_width": ("median-squared", "median"),
    "hyperparameters": ("recommended", "paper"),
    "defence": ("none", "groups"),
}
_COUNTS = ("n_parties", "n_per_party", "n_test", "n_anchors", "n_sources", "n_components", "n_neighbors")


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Settings that are fixed while methods are compared.

    The defaults are the paper's (tab:default-settings), where it states any.

    Attributes
    ----------
    dataset : str
        A name that `datacollab.datasets.load` knows.
    n_parties, n_per_party : int
        K and n(k).
    split : {"iid", "stratified", "label-skew"}
        How rows are dealt out to the parties; see `datacollab.datasets.split_parties`.  The paper says no more than
        "randomly".
    concentration : float
        Of "label-skew": near 0 a party has one class, at large values all have the shares of the whole table.
    n_test : int
        Common test rows; every party predicts all of them.  0 takes as many as all parties have together.
    n_anchors : int
        n_a.
    n_sources : int or None
        Real rows that SMOTE starts from, included in the anchor and disjoint from all other rows.  None takes all
        anchors from real rows.
    obfuscator : {"pca", "kernel-pca", "umap", "random-projection"}
        f_k of every party.
    out_of_sample : {"auto", "row-wise", "umap"}
        How UMAP maps rows it was not fitted on: row by row, or by umap-learn's own transform as in the paper, where
        anchor, training and test rows each go in one batch.  "auto" is "umap" with the paper's hyperparameters, and
        "row-wise" otherwise.
    kernel_width : {"median-squared", "median"}
        Two readings of the median heuristic for kernel PCA: exp(-||x - x'||^2 / m) with m the median squared distance,
        or exp(-||x - x'||^2 / (2 s^2)) with s the median distance, which is about twice as wide.
    n_components : int
        d~ = d^.
    n_neighbors : int
        Neighbours for SMOTE and for the graphs.
    hyperparameters : {"recommended", "paper"}
        Which preset of them KTI has; see `method`.
    defence : {"none", "groups"}
        Defence beside obfuscating.  "groups": f_k is fitted on other rows than the party's and rotated, and
        its shared rows are means of five or more of a class; see `datacollab.party.Microaggregation`.

    Raises
    ------
    ValueError
        When a name is unknown, a count is not a positive int, the concentration is not a positive number, or there are
        more sources than anchors.
    """

    dataset: str = "mnist"
    n_parties: int = 10
    n_per_party: int = 100
    split: str = "iid"
    concentration: float = 1.0
    n_test: int = 0
    n_anchors: int = 1000
    n_sources: int | None = 100
    obfuscator: str = "umap"
    out_of_sample: str = "auto"
    kernel_width: str = "median-squared"
    n_components: int = 10
    n_neighbors: int = 10
    hyperparameters: str = "recommended"
    defence: str = "none"

    def __post_init__(self) -> None:
        for setting, allowed in _CHOICES.items():
            value = getattr(self, setting)
            if value not in allowed:
                raise ValueError(f"Unknown {setting} {value!r}; choose one of {', '.join(allowed)}.")
        if self.n_test == 0:
            object.__setattr__(self, "n_test", self.n_parties * self.n_per_party)
        for setting in _COUNTS:
            value = getattr(self, setting)
            if value is None and setting == "n_sources":
                continue
            # True is an int to Python, and no count.
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{setting} must be a positive int; got {value!r}.")
            object.__setattr__(self, setting, int(value))
        given: Any = self.concentration
        if isinstance(given, bool) or not isinstance(given, Real) or not float(given) > 0:
            raise ValueError(f"concentration must be a positive number; got {given!r}.")
        object.__setattr__(self, "concentration", float(given))
        if self.n_sources is not None and self.n_sources > self.n_anchors:
            raise ValueError(
                f"n_sources={self.n_sources} is above n_anchors={self.n_anchors}, but the anchor includes its sources. "
                "Lower n_sources or raise n_anchors."
            )
        if self.out_of_sample == "auto":
            object.__setattr__(self, "out_of_sample", "umap" if self.hyperparameters == "paper" else "row-wise")

    @property
    def n_rows(self) -> int:
        """Real rows that one trial takes: the parties', the test rows, the anchor's or its sources, and `n_fit`."""
        return self.n_parties * self.n_per_party + self.n_test + self.n_public + self.n_fit

    @property
    def n_public(self) -> int:
        """Real rows that the anchor consists of, or is made from."""
        return self.n_sources or self.n_anchors

    @property
    def n_fit(self) -> int:
        """Real rows that the parties fit on instead of their own; each takes half, as many as it has itself."""
        if self.defence == "groups":
            return 2 * self.n_per_party
        return 0

    def as_dict(self) -> dict[str, Any]:
        """All settings, for a report."""
        return asdict(self)
