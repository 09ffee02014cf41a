"""Anchors by SMOTE: new rows on the segments between neighbouring sources."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors

from .._constraints import Interval, StrOptions
from .._encoder import TableEncoder
from .._frames import rows_among
from .._validation import FloatArray
from ..errors import AnchorError
from ._samplers import AnchorSampler
from ._sources import as_numbers, check_target, distinct_rows, encode_classes, split_equally


class SMOTEAnchor(AnchorSampler):
    """An anchor of rows interpolated between neighbouring sources, by SMOTE [Chawla2002]_.

    A generated row is :math:`s + w (t - s)`: s a source, t one of its `n_neighbors` nearest other sources, w uniform
    on [0, 1).  The task decides which rows may be neighbours, and which target the row gets:

    * classification: t has the class of s, and the row inherits the class.  Every class has the same total,
      ``n_samples / n_classes``; the first classes in sorted order take the remainder;
    * regression: t is any source, and the target is interpolated with the same w.  The paper leaves this open;
    * no `y_source`: t is any source, and there is no target.

    In a table of categories and gaps, neighbours are near in standardised numbers beside zeros and ones, and the row
    has the category of the nearer end [Chawla2002]_.

    Parameters
    ----------
    n_samples : int, default=1000
        The total number of anchor rows.
    n_neighbors : int, default=10
        Neighbours in Euclidean distance, so scale the columns first if their units differ.  If there are fewer other
        sources, all of them are neighbours.
    include_sources : bool, default=False
        Whether the sources themselves come first in the anchor, counted in the totals, as in the paper's experiments.
        Leave it off unless the sources are public: by default no returned row equals a source.
    task : {"auto", "classification", "regression"}, default="auto"
        The kind of `y_source`; "auto" reads floating-point numbers as regression and all else as class labels.

    Raises
    ------
    AnchorError
        In `sample`, if the sources or targets cannot be used, a class has more sources than rows in the anchor
        (`include_sources=True`) or only one distinct source (`include_sources=False`).

    Notes
    -----
    A generated row can lie arbitrarily near a source.  Use sources that may be known to every party.  Sources that
    occur several times count once when rows are generated, with the mean of their targets.  A class with one distinct
    source has nothing to interpolate: with `include_sources=True` its rows are repeats of that source, otherwise it is
    an error.

    The rows of the anchor are in order: sources if included, then generated rows class after class.  Targets have the
    dtype of `y_source`, or float64 for regression.

    Examples
    --------
    The paper's anchor takes 100 sources and makes 1000 rows, 100 for each of ten classes, sources included
    [Imakura2023]_.

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from datacollab.anchor import SMOTEAnchor
    >>> X, y = load_digits(return_X_y=True)
    >>> anchor, target = SMOTEAnchor(1000, include_sources=True).sample(X[:100], y[:100], random_state=0)
    >>> np.bincount(target)
    array([100, 100, 100, 100, 100, 100, 100, 100, 100, 100])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "include_sources": ["boolean"],
        "task": [StrOptions({"auto", "classification", "regression"})],
    }

    def __init__(
        self, n_samples: int = 1000, *, n_neighbors: int = 10, include_sources: bool = False, task: str = "auto"
    ) -> None:
        self.n_samples = n_samples
        self.n_neighbors = n_neighbors
        self.include_sources = include_sources
        self.task = task

    def _draw(
        self,
        X: FloatArray,
        y_source: ArrayLike | None,
        generator: np.random.RandomState,
        settle: Callable[[FloatArray], FloatArray] = np.asarray,
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        n_sources, n_features = X.shape
        if y_source is None:
            return self._grow(X, n_features, np.zeros(n_sources, dtype=np.intp), generator, settle)[0], None
        y = check_target(y_source, n_sources)
        if self.task == "regression" or (self.task == "auto" and y.dtype.kind == "f"):
            # The target is one column more, interpolated with the row.
            no_classes = np.zeros(n_sources, dtype=np.intp)
            table, _ = self._grow(np.column_stack([X, as_numbers(y)]), n_features, no_classes, generator, settle)
            return np.ascontiguousarray(table[:, :-1]), table[:, -1].copy()
        classes, codes = encode_classes(y)
        anchor, anchor_codes = self._grow(X, n_features, codes, generator, settle)
        return anchor, classes[anchor_codes]

    def _draw_encoded(
        self, table: Any, encoder: TableEncoder, y_source: ArrayLike | None, generator: np.random.RandomState
    ) -> tuple[Any, NDArray[Any] | None]:
        rows, target = self._draw(encoder.transform(table), y_source, generator, encoder.settle)
        return encoder.decode(rows, table), target

    def _grow(
        self,
        table: FloatArray,
        n_features: int,
        codes: NDArray[np.intp],
        generator: np.random.RandomState,
        settle: Callable[[FloatArray], FloatArray],
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Interpolate all columns of a table, features first, within its classes; return rows and their classes."""
        counts = split_equally(self.n_samples, codes.max() + 1)
        if self.include_sources:
            counts -= np.bincount(codes)
            _check_room(counts, codes)

        # A source that occurs several times would draw its neighbours to itself.
        first, same = distinct_rows(np.column_stack([codes, table[:, :n_features]]))
        sources = table[first]
        source_codes = codes[first]
        # With the mean of their targets.
        sums = np.zeros((len(first), table.shape[1] - n_features))
        np.add.at(sums, same, table[:, n_features:])
        sources[:, n_features:] = sums / np.bincount(same)[:, np.newaxis]
        if not self.include_sources:
            _check_several(np.bincount(source_codes) == 1)

        def draw(counts: NDArray[np.intp]) -> FloatArray:
            # A row between two categories has the one that is nearer, and may then equal a source.
            if counts.size == 1:
                return settle(between_neighbors(sources, n_features, counts[0], self.n_neighbors, generator))
            return settle(within_classes(sources, source_codes, counts, self.n_neighbors, generator))

        rows = draw(counts)
        row_codes = np.repeat(np.arange(counts.size), counts)
        if not self.include_sources:
            return redraw_copies(rows, row_codes, table[:, :n_features], draw), row_codes
        return np.vstack([table, rows]), np.concatenate([codes, row_codes])


def _check_room(counts: NDArray[np.intp], codes: NDArray[np.intp]) -> None:
    """Refuse sources that do not fit into the totals of their classes."""
    if counts.min() >= 0:
        return
    largest = int(np.bincount(codes).max())
    raise AnchorError(
        f"include_sources=True, but {int((counts < 0).sum())} of {counts.size} classes have more sources than their "
        f"equal share of n_samples; the largest has {largest}. Set n_samples to at least {largest * counts.size}, give "
        "fewer sources, or set include_sources=False."
    )


def _check_several(lone: NDArray[np.bool_]) -> None:
    """Refuse classes with one distinct source."""
    if not lone.any():
        return
    where = "X_source has"
    if lone.size > 1:
        where = f"{int(lone.sum())} of {lone.size} classes in y_source have"
    raise AnchorError(
        f"{where} one distinct source row only, so there is no segment to draw from, and repeating the row would put "
        "it into the anchor. Give at least two distinct sources per class, set include_sources=True if the sources are "
        "public, or task='regression' if y_source is a quantity."
    )


_MAX_REDRAWS = 100


def between_neighbors(
    sources: FloatArray, n_features: int, n_samples: int, n_neighbors: int, random_state: np.random.RandomState
) -> FloatArray:
    """Draw ``s + w (t - s)``, s a source, t one of its nearest by the first columns; a single source is repeated."""
    if sources.shape[0] == 1:
        return np.repeat(sources, n_samples, axis=0)
    n_neighbors = min(n_neighbors, sources.shape[0] - 1)
    features = sources[:, :n_features]
    neighbors = NearestNeighbors(n_neighbors=n_neighbors).fit(features).kneighbors(return_distance=False)
    start = random_state.randint(sources.shape[0], size=n_samples)
    end = neighbors[start, random_state.randint(n_neighbors, size=n_samples)]
    weight = random_state.uniform(size=(n_samples, 1))
    return np.asarray(sources[start] + weight * (sources[end] - sources[start]))  # (n_samples, n_columns)


def within_classes(
    sources: FloatArray,
    codes: NDArray[np.intp],
    counts: NDArray[np.intp],
    n_neighbors: int,
    random_state: np.random.RandomState,
) -> FloatArray:
    """Draw ``counts[c]`` rows of each class c, class after class; a single source of a class is repeated."""
    widths = np.minimum(n_neighbors, np.bincount(codes, minlength=counts.size) - 1)
    rows = np.empty((counts.sum(), sources.shape[1]))
    row_codes = np.repeat(np.arange(counts.size), counts)
    # Classes of few sources come first, whose neighbours are fewer.
    for code in np.argsort(widths, kind="stable"):
        own = sources[codes == code]
        width = widths[code]
        n_rows = counts[code]
        if n_rows and width == 0:
            rows[row_codes == code] = own
        elif n_rows:
            neighbors = NearestNeighbors(n_neighbors=width + 1).fit(own).kneighbors(own, return_distance=False)[:, 1:]
            # One draw for the pair of a source and one of its neighbours.
            start, which = np.divmod(random_state.randint(neighbors.size, size=n_rows), width)
            weight = random_state.uniform(size=(n_rows, 1))
            rows[row_codes == code] = own[start] + weight * (own[neighbors[start, which]] - own[start])
    return rows  # (counts.sum(), n_features)


def redraw_copies(
    rows: FloatArray, codes: NDArray[np.intp], sources: FloatArray, draw: Callable[[NDArray[np.intp]], FloatArray]
) -> FloatArray:
    """Draw again, class by class, the rows that rounding has put onto a source; ``draw(counts)`` gave ``rows``."""
    n_features = sources.shape[1]
    for _ in range(_MAX_REDRAWS):
        copies = rows_among(rows[:, :n_features], sources)
        # Weights are below 1, but rounding may put a row onto a source, which must not be in the anchor.
        if not copies.any():
            return rows
        rows[copies] = draw(np.bincount(codes[copies], minlength=codes.max() + 1))
    raise AnchorError(
        f"{int(copies.sum())} of {rows.shape[0]} generated rows still equal a source row after {_MAX_REDRAWS} draws: "
        "between some sources no other row lies. Rescale the columns, drop sources that nearly equal others, or give "
        "columns with more different entries."
    )
