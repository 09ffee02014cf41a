"""Private rows inside what is about to leave, or has come back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from numpy.typing import ArrayLike

from ._artefact_arrays import UNSEARCHED, arrays_in
from ._checks import check_rows
from ._row_search import RowSearch

__all__ = ["StoredRows", "find_training_rows"]


@dataclass(frozen=True, kw_only=True)
class StoredRows:
    """Rows of a table that were found in an artefact, without any of their entries.

    Attributes
    ----------
    path : str
        Where: attributes and names in files by name, all else by number.
    kind : {"rows", "transformed rows", "mean", "unsearched"}
        "rows" are equal to those of the table.  "transformed rows" are so after a change of units; `form` says which.
        "mean" is that of all rows, a weaker finding: it tells little about one of many rows.  "unsearched" is no
        finding but a gap: here the search was cut short.
    form : str
        What was done to the rows.
    n_found : int
        Rows of the table that were found; 0 for "mean" and "unsearched".
    n_rows : int
        Rows of the table.
    """

    path: str
    kind: Literal["rows", "transformed rows", "mean", "unsearched"]
    form: str
    n_found: int
    n_rows: int


def find_training_rows(artefact: Any, X: ArrayLike, *, affine: bool = True) -> list[StoredRows]:
    """Look for rows of a private table in a model, a bundle of arrays, or a file.

    Parameters
    ----------
    artefact : object
        A fitted estimator, a `PartyModel`, a `Share`, a mapping of arrays, bytes, or the `pathlib.Path` of a file.
        Nothing is changed, revived from bytes, or called except for what says how data frames, tensors and extension
        types look as arrays.
    X : array-like of shape (n_rows, n_features)
        The party's own rows, for what the party keeps or sends; its representation or collaboration representation,
        for what must not contain those.
    affine : bool, default=True
        Whether to look for rows in other units too: less their mean, standardised, scaled to a range, to unit length,
        column by column in units of their own, or mapped by any affine map that can be undone, where the array has the
        rows in the table's order.

    Returns
    -------
    list of StoredRows
        At most one for each array; empty if there is none.

    Raises
    ------
    RepresentationError
        When the table is not finite, two-dimensional and numeric.

    Notes
    -----
    That nothing is found does not show that nothing is there.  Rows under other maps, encrypted, in text, or in formats
    other than those of NumPy and safetensors are found only where they stand byte by byte in double or single
    precision.  Of a table of a single column little is found, for a number may be anywhere by chance.  A model
    that contains no row may still tell much about one: see `membership`.

    The work is bounded: of objects with very many parts, very large arrays, and archives that unpack to very much,
    part is left out, and an "unsearched" entry says so.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA, KernelPCA
    >>> from datacollab.risk.attacks import find_training_rows
    >>> X = np.random.default_rng(0).normal(size=(50, 6))
    >>> [(found.path, found.n_found) for found in find_training_rows(KernelPCA(2).fit(X), X)]
    [('KernelPCA.X_fit_', 50)]
    >>> [(found.path, found.kind) for found in find_training_rows(PCA(2).fit(X), X)]
    [('PCA.mean_', 'mean')]
    """
    table = check_rows(X, "The private table")
    search = RowSearch(table, affine=affine)
    contents = artefact.read_bytes() if isinstance(artefact, Path) else artefact
    findings = []
    for path, array in arrays_in(contents):
        found = _describe(search, array)
        if found is not None:
            kind, form, n_found = found
            findings.append(StoredRows(path=path, kind=kind, form=form, n_found=n_found, n_rows=len(table)))
    return findings


def _describe(
    search: RowSearch, array: Any
) -> tuple[Literal["rows", "transformed rows", "mean", "unsearched"], str, int] | None:
    if array is UNSEARCHED:
        return "unsearched", "too large to look into", 0
    if isinstance(array, bytes):
        n_found = search.raw(array)
        return ("rows", "byte by byte", n_found) if n_found else None
    rows = search.rows(array)
    if rows is not None:
        form, n_found = rows
        return "rows" if form == "as they are" else "transformed rows", form, n_found
    return ("mean", "mean of all rows", 0) if search.mean(array) else None
