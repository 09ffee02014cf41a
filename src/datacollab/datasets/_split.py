"""Splitting one table into several parties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.extmath import randomized_svd

from .._validation import FloatArray

_SCHEMES = ("iid", "stratified", "label-skew", "feature-shift")
_N_REGIONS = 10
# Beyond these a mix is a single class, or the shares of the table, to every digit.
_LEAST = 1e-6
_MOST = 1e9


def split_parties(
    X: ArrayLike,
    y: ArrayLike,
    n_parties: int,
    n_per_party: int,
    *,
    scheme: Literal["iid", "stratified", "label-skew", "feature-shift"] = "iid",
    concentration: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> PartySplit:
    r"""Split a table into equally large, disjoint parties.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        Parties get rows of the same type: numpy arrays, scipy sparse matrices, pandas or polars frames.
    y : array-like of shape (n_samples,)
    n_parties : int
    n_per_party : int
        Rows of each party; the others are in ``rest``.
    scheme : {"iid", "stratified", "label-skew", "feature-shift"}, default="iid"
        * "iid": the rows are dealt out at random, as in the paper's experiments;
        * "stratified": the same, each party with the class shares of the whole table (classification);
        * "label-skew": each party has its own mix of classes (classification), drawn as in [Hsu2019]_;
        * "feature-shift": each party has its own mix of regions of the feature space (classification and regression;
          numeric columns), a form of feature distribution skew [Li2022]_.
    concentration : float, default=0.5
        How alike the mixes of "label-skew" and "feature-shift" are: near 0 a party has one class or region, at large
        values all parties have the shares of the whole table.
    random_state : int, RandomState instance or None, default=None
        The same int gives the same split.

    Returns
    -------
    split : PartySplit
        Mapping from ``"party-0"``, ``"party-1"``, ... to ``(X, y)``, with the attributes ``indices`` and ``rest``.

    Raises
    ------
    ValueError
        If there are not enough rows, lengths differ, a parameter is out of range, "stratified" or "label-skew" meets a
        continuous `y`, or "feature-shift" columns that are not finite numbers.

    Notes
    -----
    With "label-skew", party k draws :math:`q_k \sim \mathrm{Dir}(\alpha C p)`, p the shares of the C classes in the
    table and :math:`\alpha` the `concentration`: for classes of equal size the symmetric Dirichlet distribution of
    [Li2022]_, where :math:`\alpha C` is the concentration of [Hsu2019]_.  The party then draws `n_per_party` rows,
    their classes by :math:`q_k`.  If a class runs short, its rows are raffled among the parties that drew it, and a
    party that went away short draws again from the classes that are left.  So sizes are kept, and the mix gives way.

    "feature-shift" does the same with 10 regions instead of classes: slices with equally many rows along the first
    principal direction of the standardised columns.

    Examples
    --------
    >>> from datacollab.datasets import load, split_parties
    >>> X, y = load("digits")
    >>> parties = split_parties(X, y, n_parties=5, n_per_party=100, random_state=0)
    >>> parties
    PartySplit(5 parties of 100 rows, rest 1297)
    >>> X_0, y_0 = parties["party-0"]
    >>> X_pooled, y_pooled, groups = parties.pooled()
    >>> X_test, y_test = parties.remaining()
    >>> X_0.shape, X_pooled.shape, X_test.shape
    ((100, 64), (500, 64), (1297, 64))
    """
    arguments: tuple[Any, Any] = (X, y)
    table, target = (np.asarray(each) if isinstance(each, list | tuple) else each for each in arguments)
    check_consistent_length(table, target)
    n_samples: int = table.shape[0]
    _check_parameters(n_samples, n_parties, n_per_party, scheme, concentration)
    generator = check_random_state(random_state)
    if scheme == "iid":
        rows = generator.permutation(n_samples)[: n_parties * n_per_party].reshape(n_parties, n_per_party)
    elif scheme == "stratified":
        rows = draw_stratified(_class_codes(target, scheme), n_parties, n_per_party, generator)
    elif scheme == "label-skew":
        rows = draw_mixes(_class_codes(target, scheme), n_parties, n_per_party, concentration, generator)
    else:
        codes = regions(_numbers(table), min(_N_REGIONS, n_samples), generator)
        rows = draw_mixes(codes, n_parties, n_per_party, concentration, generator)
    # Rows of no party, in random order: its first ones are a random anchor.
    rest = generator.permutation(np.setdiff1d(np.arange(n_samples), rows))
    return PartySplit(table, target, {f"party-{k}": rows_k for k, rows_k in enumerate(rows)}, rest)


def _check_parameters(n_samples: int, n_parties: Any, n_per_party: Any, scheme: str, concentration: Any) -> None:
    for parameter, count in {"n_parties": n_parties, "n_per_party": n_per_party}.items():
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ValueError(f"{parameter} must be a positive int; got {count!r}.")
    if scheme not in _SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(map(repr, _SCHEMES))}; got {scheme!r}.")
    if not isinstance(concentration, int | float | np.number) or not _LEAST <= concentration <= _MOST:
        raise ValueError(f"concentration must be between {_LEAST:g} and {_MOST:g}; got {concentration!r}.")
    if n_parties * n_per_party > n_samples:
        raise ValueError(
            f"{n_parties} parties of {n_per_party} rows need {n_parties * n_per_party} rows, but X has {n_samples}. "
            f"Ask for at most {n_samples // n_parties} rows per party, or for fewer parties."
        )


def _class_codes(y: Any, scheme: str) -> NDArray[np.intp]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"scheme={scheme!r} needs one class label per row; got y of shape {labels.shape}.")
    # Classes that pandas has made floating-point numbers of are whole ones.
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.round(labels)):
        raise ValueError(
            f"scheme={scheme!r} needs class labels, but y is continuous or has missing values. "
            "Use scheme='iid' or 'feature-shift' for regression."
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"scheme={scheme!r} needs class labels of one type; y mixes several.") from error


def _numbers(X: Any) -> FloatArray:
    try:
        table = np.asarray(X, dtype=np.float64)
        if table.ndim == 2 and np.isfinite(table).all():
            return table
    except (TypeError, ValueError):
        # numpy's own message may quote an entry, so it is dropped.
        pass
    raise ValueError(
        "scheme='feature-shift' needs X as a two-dimensional dense table of finite numbers. Encode categories and "
        "impute missing values first, or use another scheme."
    )


class PartyData(NamedTuple):
    """One party's rows and targets, with the types of the whole table."""

    X: Any
    y: Any


@dataclass(frozen=True, eq=False, repr=False)
class PartySplit(Mapping[str, PartyData]):
    """A table split into parties: a mapping from ``"party-0"``, ``"party-1"``, ... to their rows.

    The split itself holds only indices; each access takes the rows from the whole table, `X` and `y`.

    Attributes
    ----------
    indices : mapping of str to ndarray of shape (n_per_party,)
        Rows of `X` that each party has.
    rest : ndarray of shape (n_samples - n_parties * n_per_party,)
        Rows of `X` that no party has, in random order; for anchors and tests.
    """

    X: Any
    y: Any
    indices: Mapping[str, NDArray[np.intp]]
    rest: NDArray[np.intp]

    def __getitem__(self, party: str) -> PartyData:
        return self._take(self.indices[party])

    def __iter__(self) -> Iterator[str]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        sizes = {len(rows) for rows in self.indices.values()}
        return f"PartySplit({len(self)} parties of {', '.join(map(str, sorted(sizes)))} rows, rest {len(self.rest)})"

    def pooled(self) -> tuple[Any, Any, NDArray[np.str_]]:
        """Return all parties' rows, targets and names together, for an estimator's ``fit(X, y, groups=groups)``.

        Parties follow one another, in the type of the whole table.
        """
        sizes = [len(rows) for rows in self.indices.values()]
        X, y = self._take(np.concatenate(list(self.indices.values())))
        return X, y, np.repeat(np.array(list(self.indices)), sizes)

    def remaining(self) -> PartyData:
        """Return the rows that no party has, in the order of `rest`."""
        return self._take(self.rest)

    def _take(self, rows: NDArray[np.intp]) -> PartyData:
        return PartyData(_safe_indexing(self.X, rows), _safe_indexing(self.y, rows))


Codes = NDArray[np.intp]


def draw_stratified(codes: Codes, n_parties: int, n_per_party: int, generator: np.random.RandomState) -> Codes:
    """Draw parties with the class shares of the whole table.

    The rows of a class of size c are spread evenly, 1/c apart from a random start, over [0, 1); any run of consecutive
    rows in that order then has every class in its share, give or take one row at either end.
    """
    shuffled = generator.permutation(codes.size)
    counts = np.bincount(codes)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    rank = np.arange(codes.size) - np.repeat(np.cumsum(counts) - counts, counts)
    place = (rank + np.repeat(generator.random_sample(counts.size), counts)) / np.repeat(counts, counts)
    parties = by_class[np.argsort(place, kind="stable")][: n_parties * n_per_party].reshape(n_parties, n_per_party)
    return np.array([generator.permutation(rows) for rows in parties])


def draw_mixes(
    codes: Codes, n_parties: int, n_per_party: int, concentration: float, generator: np.random.RandomState
) -> Codes:
    """Draw each party's own mix of the classes from a Dirichlet distribution around the shares in the table."""
    stock = np.bincount(codes)
    # alpha C p, with p the classes' shares of the table
    mixes = _dirichlet(concentration * stock.size * stock / codes.size, n_parties, generator)
    counts = _draw_counts(mixes, stock, n_per_party, generator)
    shuffled = generator.permutation(codes.size)
    by_class = np.split(shuffled[np.argsort(codes[shuffled], kind="stable")], np.cumsum(stock)[:-1])
    taken = [np.split(rows, np.cumsum(counts[:, code]))[:-1] for code, rows in enumerate(by_class)]
    return np.array([generator.permutation(np.concatenate(pieces)) for pieces in zip(*taken, strict=True)])


def regions(X: FloatArray, n_regions: int, generator: np.random.RandomState) -> Codes:
    """Cut the rows into equally large slices along the first principal direction of the standardised columns."""
    standardised = StandardScaler().fit_transform(X)
    # Unit variance, or the column of the largest unit would make the regions.
    scores = randomized_svd(standardised, 1, random_state=generator)[0][:, 0]
    codes = np.empty(scores.size, dtype=np.intp)
    codes[np.argsort(scores, kind="stable")] = np.arange(scores.size) * n_regions // scores.size
    return codes  # (n_samples,)


def _dirichlet(alpha: FloatArray, size: int, generator: np.random.RandomState) -> FloatArray:
    """Draw by logarithms of gamma variates, Γ(a) = Γ(a + 1) U^(1/a): small `alpha` would underflow to 0/0."""
    logs = np.log(generator.standard_gamma(alpha + 1, (size, alpha.size)))
    logs -= generator.standard_exponential((size, alpha.size)) / alpha
    mixes: FloatArray = softmax(logs, axis=1)
    return mixes  # (size, n_classes)


def _draw_counts(mixes: FloatArray, stock: Codes, n_per_party: int, generator: np.random.RandomState) -> Codes:
    """Draw how many rows of each class each party gets, shape (n_parties, n_classes).

    All parties draw at once.  A class in short supply is raffled among those that asked for it; parties left short
    draw again from the classes that are left.  Every round fills all parties or exhausts a class.
    """
    counts = np.zeros(mixes.shape, dtype=np.intp)
    while (short := n_per_party - counts.sum(axis=1)).any():
        left = stock - counts.sum(axis=0)
        weights = np.where(left > 0, mixes, 0)
        # A party of whose classes none is left takes any other.
        weights[weights.sum(axis=1) == 0] = left
        weights /= weights.sum(axis=1, keepdims=True)
        asked = np.array([generator.multinomial(n, row) for n, row in zip(short, weights, strict=True)])
        # A raffle, since first come, first served would favour the first parties.
        for code in np.flatnonzero(asked.sum(axis=0) > left):
            tickets = generator.permutation(np.repeat(np.arange(len(mixes)), asked[:, code]))
            asked[:, code] = np.bincount(tickets[: left[code]], minlength=len(mixes))
        counts += asked
    return counts
