"""Contracts that other people's objects can be checked against.

Each check raises `AssertionError` with the fault and its size, never with an entry of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from ._validation import FloatArray

__all__ = ["check_integrator", "check_obfuscator", "is_row_wise"]


def check_obfuscator(obfuscator: Any, X: ArrayLike, *, rows: int = 20, rtol: float = 1e-6) -> None:
    """Check that a transformer can serve as an obfuscator f_k.

    A third of the rows is held out, and a clone is fitted on the others.  On fitted rows, new rows and both together,
    it must give

    * a two-dimensional array of finite real floating-point numbers, one row for each row, always as many columns
      (they need not be fewer than those of `X`);
    * **row-wise** results (eq. row-wise-obfuscation of the paper): each row alone, half of the rows, and the rows in
      another order give the same as all rows at once;
    * the same result each time, and leave `X` unchanged.

    Parameters
    ----------
    obfuscator : transformer
        With `get_params`, `fit` and `transform`; neither changed nor fitted.
    X : array-like or dataframe of shape (n_samples, n_features)
        At least six rows, of the kind the obfuscator is meant for.
    rows : int, default=20
        How many rows of each kind are transformed one by one.
    rtol : float, default=1e-6
        Largest deviation allowed, relative to the largest entry of the result.

    Raises
    ------
    AssertionError
        If the contract is broken.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from datacollab.testing import check_obfuscator
    >>> check_obfuscator(PCA(n_components=2), np.random.default_rng(0).normal(size=(30, 4)))
    """
    # New rows matter most: UMAP and others give back what they stored for rows that they know.
    X_fit, X_new = train_test_split(X, test_size=1 / 3, random_state=0)
    before = _as_bytes(X_fit)
    fitted = clone(obfuscator).fit(X_fit)
    _require(_as_bytes(X_fit) == before, "fit changes its input.")
    widths = set()
    for what, batch in {"new rows": X_new, "training rows": X_fit, "training and new rows together": X}.items():
        before = _as_bytes(batch)
        first = _transform(fitted, batch, what)
        second = _transform(fitted, batch, what)
        _require(_as_bytes(batch) == before, f"transform changes its input, on {what}.")
        _require(np.array_equal(first, second), f"transform gives different results when called twice, on {what}.")
        for how, deviation in _deviations(fitted, batch, what, rows):
            _require(
                deviation <= rtol,
                f"{type(fitted).__name__} is not row-wise: {what}, {how}, deviate by {deviation:.1e} relative to the "
                f"largest entry ({rtol:.1e} is allowed). A row's result must not depend on other rows of the batch.",
            )
        widths.add(first.shape[1])
    _require(len(widths) == 1, f"the number of columns depends on the rows: {sorted(widths)}.")


def check_integrator(integrator: Any, *, rtol: float = 1e-6) -> None:
    """Check that an integration method keeps the contract of all of them.

    Clones are fitted on made-up representations of 60 anchor rows by three parties, six columns each, with targets of
    two classes.  The contract:

    * `fit` returns self, leaves parameters and input unchanged, and sets `integration_functions_`, one callable per
      party, keyed by name; a plain sequence of arrays is keyed by position;
    * `transform` maps any subset of the parties, each row by itself, to finite float64 arrays with the same number of
      columns for all, and agrees with the integration functions;
    * the same again gives the same, also from float64 numbers or a plain sequence;
    * NaN, unequal numbers of anchor rows and unknown parties are a `ValueError` whose message names the party.

    Parameters
    ----------
    integrator : BaseIntegrator
        Not changed and not fitted.  At most six components.
    rtol : float, default=1e-6
        Largest deviation allowed, relative to the largest entry of the result.

    Raises
    ------
    AssertionError
        If the contract is broken.

    Examples
    --------
    >>> from datacollab import LTI
    >>> from datacollab.testing import check_integrator
    >>> check_integrator(LTI(n_components=4))
    """
    # One latent table seen through three bends, so that no linear map is exact and a method has to integrate.
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(60, 6))
    bends = {"north": np.tanh, "south": np.sin, "west": np.arctan}
    anchors = {party: bend(latent @ rng.normal(size=(6, 6))).astype(np.float32) for party, bend in bends.items()}
    y = (latent[:, 0] > 0).astype(int)
    before = {party: A.tobytes() for party, A in anchors.items()}

    fitted = clone(integrator)
    parameters = fitted.get_params(deep=False)
    _require(fitted.fit(anchors, y) is fitted, "fit must return self.")
    _require({party: A.tobytes() for party, A in anchors.items()} == before, "fit changes its input.")
    changed = [name for name, value in fitted.get_params(deep=False).items() if value is not parameters[name]]
    _require(not changed, f"fit changes the parameters {changed}.")
    _require(list(fitted.integration_functions_) == list(anchors), "integration_functions_ must be keyed by party.")

    aligned = fitted.transform(anchors)
    widths = set()
    for party, rows in aligned.items():
        _require(rows.dtype == np.float64 and rows.ndim == 2, "transform must give two-dimensional float64 arrays.")
        _require(
            rows.shape[0] == 60 and bool(np.isfinite(rows).all()), "transform must give a finite row for each row."
        )
        widths.add(rows.shape[1])
        # A party that predicts later sends one row at a time, and alone.
        alone = fitted.transform({party: anchors[party][7:8]})
        _require(list(alone) == [party], "transform must map just the parties it is given.")
        _require_close(alone[party], rows[7:8], rtol, "a row alone and among others")
        _require_close(fitted.integration_functions_[party](anchors[party]), rows, rtol, "integration_functions_")
    _require(len(widths) == 1, f"all parties must get the same number of columns; got {sorted(widths)}.")

    others: dict[str, tuple[Any, Callable[[str], Any]]] = {
        "a second fit": (anchors, str),
        "float64 input": ({party: A.astype(np.float64) for party, A in anchors.items()}, str),
        "a plain sequence": (list(anchors.values()), list(anchors).index),
    }
    for what, (tables, key) in others.items():
        again = clone(integrator).fit(tables, y).transform(tables)
        for party, rows in aligned.items():
            _require_close(again[key(party)], rows, rtol, what)

    spoilt = np.where(np.arange(360).reshape(60, 6) == 100, np.nan, anchors["south"])
    _require_error(lambda: clone(integrator).fit({**anchors, "south": spoilt}, y), "NaN", "south")
    _require_error(lambda: clone(integrator).fit({**anchors, "south": spoilt[:9]}, y), "unequal anchors", "south")
    _require_error(lambda: fitted.transform({"east": anchors["west"]}), "an unknown party", "east")
    _require_error(lambda: fitted.transform({"west": anchors["west"][:, :4]}), "missing columns", "west")


def is_row_wise(obfuscator: Any, X: ArrayLike, *, rows: int | None = None, rtol: float = 1e-6) -> bool:
    """Return whether a fitted transformer maps each row by itself.

    A row alone, half of the rows, and the rows in another order must give the same as all rows at once.

    Parameters
    ----------
    obfuscator : transformer
        Fitted.
    X : array-like or dataframe of shape (n_rows, n_features)
        Rows it was **not** fitted on.  Some transformers that are not row-wise give training rows back exactly.
    rows : int, optional
        How many rows are transformed one by one.  None is all.
    rtol : float, default=1e-6
        Largest deviation allowed, relative to the largest entry of the result.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from datacollab.testing import is_row_wise
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> is_row_wise(FunctionTransformer(lambda X: X / X.max()).fit(X[:20]), X[20:])
    False
    """
    return all(deviation <= rtol for _, deviation in _deviations(obfuscator, X, "the given rows", rows))


def _deviations(obfuscator: Any, X: ArrayLike, what: str, rows: int | None) -> Iterator[tuple[str, float]]:
    """Yield the relative deviation from the result for all rows at once, for each other way to pass them."""
    together = _transform(obfuscator, X, what)
    n_rows = together.shape[0]
    scale = float(np.abs(together).max()) or 1.0
    # Another order finds what depends on neighbours in the batch, halves what depends on its size.
    shuffled = np.random.default_rng(0).permutation(n_rows)
    half = n_rows // 2
    ways = {
        "one by one": [np.array([row]) for row in shuffled[:rows]],
        "in two halves": [part for part in (np.arange(half), np.arange(half, n_rows)) if part.size],
        "in another order": [shuffled],
    }
    for how, parts in ways.items():
        largest = 0.0
        for part in parts:
            alone = _transform(obfuscator, _take(X, part), f"{what}, {how}")
            _require(
                alone.shape == together[part].shape,
                f"{type(obfuscator).__name__} is not row-wise: {what}, {how}, have shape {alone.shape} where "
                f"{together[part].shape} was expected.",
            )
            largest = max(largest, float(np.abs(alone - together[part]).max()))
        yield how, largest / scale


def _transform(obfuscator: Any, X: ArrayLike, what: str) -> FloatArray:
    result = obfuscator.transform(X)
    _require(not sparse.issparse(result), f"transform gives a sparse matrix, on {what}; expected a dense array.")
    array: NDArray[Any] = np.asarray(result)
    n_rows = np.shape(X)[0]
    _require(
        array.ndim == 2 and array.shape[0] == n_rows and array.shape[1] > 0,
        f"transform gives shape {array.shape} for {n_rows} rows, on {what}; expected a row for each row.",
    )
    _require(
        np.issubdtype(array.dtype, np.floating),
        f"transform gives dtype {array.dtype}, on {what}; expected a real floating-point type.",
    )
    _require(bool(np.isfinite(array).all()), f"transform gives NaN or infinity, on {what}.")
    return array.astype(np.float64)


def _take(X: ArrayLike, index: NDArray[np.intp]) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[index]
    return np.asarray(X)[index]


def _as_bytes(X: ArrayLike) -> bytes:
    values = np.asarray(X)
    # The bytes of objects are their addresses, which differ each time that a frame is read.
    if values.dtype == object:
        return repr(values.tolist()).encode()
    return values.tobytes()


def _require_close(got: FloatArray, wanted: FloatArray, rtol: float, what: str) -> None:
    deviation = float(np.abs(got - wanted).max() / (np.abs(wanted).max() or 1.0))
    _require(deviation <= rtol, f"{what}: results deviate by {deviation:.1e}, relative to the largest entry.")


def _require_error(call: Callable[[], Any], what: str, party: str) -> None:
    try:
        call()
    except ValueError as error:
        _require(party in str(error), f"the error for {what} must name the party.")
    else:
        _require(False, f"{what} must be a ValueError.")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
