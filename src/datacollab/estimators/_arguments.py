"""Arguments of `fit` beside one table and its targets: tables of several parties, the anchor, and its targets."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from numbers import Integral
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import column_or_1d

from .._frames import are_missing, came_by_party, plain_column, plain_table, spelt_otherwise
from .._validation import require
from ..errors import AgreementError, AnchorError

Tables = ArrayLike | Mapping[Any, ArrayLike]
_FEWEST_TARGETS = 20
"""The range of 20 numbers holds over half of any others of their distribution, but once in 50,000 times."""


def join_parties(X: Any, y: Any, groups: ArrayLike | None, party_column: str | int | None) -> tuple[Any, Any, Any]:
    """Return one table, its targets and owners: the keys, or places, of tables that came one per party.

    Raise ValueError, which names the party, if owners are named twice, or tables and targets do not fit together.
    """
    if not came_by_party(X):
        return X, y, groups
    if groups is not None or party_column is not None:
        raise ValueError("X has a table for each party, which tells the owners. Leave out groups and party_column.")
    tables = _by_party(X)
    targets: dict[Any, Any] = dict.fromkeys(tables)
    if y is not None:
        targets = _by_party(y)
    # A list of tables beside a dict of targets names parties by places here and by names there.
    if different := [party for party in [*tables, *targets] if (party in tables) != (party in targets)]:
        raise ValueError(
            f"X has tables of {len(tables)} parties, y has {len(targets)} entries, and only one of them has "
            f"{different[:10]!r}. Give both in one form, a dict or a list, with an entry for each party."
        )
    are_texts = all(isinstance(party, str) for party in tables)
    are_integers = all(isinstance(party, Integral) for party in tables)
    # Names of both kinds cannot be sorted, and a row's owner is looked up by its name.
    if not tables or not (are_texts or are_integers):
        raise ValueError(f"X has {len(tables)} parties; expected some, with names that are all texts or all integers.")
    for party, table in tables.items():
        tables[party] = plain_table(table, f"X of party {party!r}", ValueError)
        shape = np.shape(table)
        target = np.zeros(shape[:1])
        if y is not None:
            target = as_column(targets[party], f"y of party {party!r}")
        if len(shape) != 2 or target.shape not in (shape[:1], (shape[0], 1)):
            raise ValueError(
                f"Party {party!r}: X has shape {shape}, y {target.shape}; expected a table of rows and columns, and a "
                "target for each row. If X is one table, make a frame of it: pandas.DataFrame(X)."
            )
        targets[party] = target.ravel()
    owners = np.repeat(list(tables), [np.shape(table)[0] for table in tables.values()])
    if y is not None:
        y = _concatenate(list(targets.values()))
    return _join_tables(tables), y, owners


def _by_party(entries: Any) -> dict[Any, Any]:
    """Return entries by the names of their parties, or by their places."""
    if isinstance(entries, Mapping):
        return dict(entries)
    return dict(enumerate(entries))


def _join_tables(tables: dict[Any, Any]) -> Any:
    first, like = next(iter(tables.items()))
    columns = list(getattr(like, "columns", range(np.shape(like)[1])))
    for party, table in tables.items():
        names = list(getattr(table, "columns", range(np.shape(table)[1])))
        lacking = [name for name in columns if name not in names]
        if lacking or len(names) > len(columns) or type(table) is not type(like):
            raise ValueError(
                f"X of party {party!r} is a {type(table).__name__} of {len(names)} columns, X of party {first!r} a "
                f"{type(like).__name__} of {len(columns)}. The first lacks {lacking[:10]!r}."
                f"{spelt_otherwise(lacking, names)} Give tables of one type, with the same columns."
            )
    parts = list(tables.values())
    if sparse.issparse(like):
        return sparse.vstack(parts).tocsr()
    if not hasattr(like, "columns"):
        return _concatenate(parts)
    parts = [part[columns] for part in parts]  # Frames may have the same columns in another order.
    if not hasattr(like, "iloc"):
        return require("polars", "tables").concat(parts, how="vertical_relaxed")
    # Where parties have other categories, pandas would make plain entries of them.
    declared = [name for name in columns if any(part[name].dtype.name == "category" for part in parts)]
    return require("pandas", "cli").concat(parts, ignore_index=True).astype(dict.fromkeys(declared, "category"))


def _concatenate(parts: list[Any]) -> NDArray[Any]:
    arrays = [np.asarray(part) for part in parts]
    if any(array.dtype.kind in "USO" for array in arrays):
        # NumPy would make texts of numbers beside texts.
        arrays = [array.astype(object) for array in arrays]
    return np.concatenate(arrays)


def as_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an argument as an array with gaps as NaN; raise ValueError, with its name, for rows of unequal length."""
    try:
        return plain_column(values)
    except ValueError:
        raise ValueError(f"{name} must be one column; got a {type(values).__name__} of unequal rows.") from None


def check_anchor(X: Any, anchor: Any) -> None:
    """Raise AnchorError unless the anchor is a table of rows in the form of X, and as wide where both are arrays."""
    of_X = np.shape(X)
    of_anchor = np.shape(anchor)
    is_frame = hasattr(X, "columns")
    # Frames are joined by names; of arrays nothing but the width can be compared.
    is_other = is_frame != hasattr(anchor, "columns") or (not is_frame and of_X[1:] != of_anchor[1:])
    if len(of_anchor) != 2 or 0 in of_anchor or is_other:
        raise AnchorError(
            f"anchor is a {type(anchor).__name__} of shape {of_anchor}; X, without a column of owners, is a "
            f"{type(X).__name__} of shape {of_X}. Give public rows as anchor, in a table as X is, with its columns."
        )


def one_per_anchor_row(anchor_target: ArrayLike, n_anchors: int, *, may_lack: bool = True) -> NDArray[Any]:
    """Return targets of the anchor's rows, shape (n_anchors,); raise AgreementError for another shape.

    `may_lack` says whether some may be None or NaN, as where sums are shared.
    """
    target = as_column(anchor_target, "anchor_target")
    if target.shape not in ((n_anchors,), (n_anchors, 1)):
        advice = "Rows without one get None or NaN." if may_lack else "KTI.fit itself takes several targets and gaps."
        raise AgreementError(
            f"anchor_target has shape {target.shape}; expected ({n_anchors},), a target for each row of anchor. "
            f"{advice}"
        )
    return np.asarray(column_or_1d(target, warn=True))


def compare_targets(y: NDArray[Any], anchor_target: NDArray[Any], *, are_classes: bool) -> None:
    """Refuse classes of the anchor's targets that `y` lacks, and warn of numbers that lie elsewhere than `y`.

    Classes of `y` that were numbered anew, and have numbers of other classes in `anchor_target`, cannot be noticed.
    """
    labelled = anchor_target[~are_missing(anchor_target)]
    if are_classes and (unknown := {*labelled.tolist()} - {*y.tolist()}):
        n_classes = [f"{len({*each.tolist()})} classes ({each.dtype})" for each in (labelled, y)]
        raise AgreementError(
            f"anchor_target has {n_classes[0]}, y has {n_classes[1]}, and {len(unknown)} are in anchor_target alone. "
            "VotingClassifier, StackingClassifier, OneVsRestClassifier and LabelEncoder change y and not "
            "anchor_target: put the collaboration outermost, change anchor_target in the same way, or leave it out. "
            "For classes that y lacks, put None into anchor_target."
        )
    pairs = [(labelled, y, ("anchor_target", "y")), (y, labelled, ("y", "anchor_target"))]
    for inside, around, names in pairs:
        if are_classes or len(around) < _FEWEST_TARGETS:
            continue
        n_outside = int(((inside < around.min()) | (inside > around.max())).sum())
        # Numbers of one distribution lie outside of each other's range now and then; half of them, hardly ever.
        if n_outside > len(inside) / 2:
            warnings.warn(
                f"{names[0]} lies outside the range of {names[1]} in {n_outside} of {len(inside)} rows, as where "
                "TransformedTargetRegressor has transformed y and not anchor_target. Transform anchor_target in the "
                "same way, or leave it out. If neither was transformed, check the units.",
                stacklevel=5,
            )
            return


def count_before_folds(anchor: Any) -> int:
    """Return how many rows an anchor had before scikit-learn cut it into folds with X; 0 if it did not.

    Frames of scikit-learn tell: they have the whole X, and parameters of `fit` as they were given, in mappings.
    """
    frame: FrameType | None = sys._getframe(1)
    n_rows = 0
    # From the call outwards, through all of scikit-learn's: a search calls a scorer, which calls fit.
    while frame := frame and frame.f_back:
        if str(frame.f_globals.get("__name__")).startswith("sklearn."):
            n_rows = max([n_rows, *getattr(frame.f_locals.get("X"), "shape", ())[:1]])
            # The whole X is higher than the anchor that came, and somewhere there is an anchor as high as X.
            if n_rows > np.shape(anchor)[0] and any(_holds(each, n_rows) for each in frame.f_locals.values()):
                return int(n_rows)
    return 0


def _holds(value: Any, n_rows: int) -> bool:
    """Return whether a mapping, at any depth or in a tuple, has a table of so many rows."""
    if isinstance(value, tuple):
        return any(isinstance(each, Mapping) and _holds(each, n_rows) for each in value)
    if not isinstance(value, Mapping):
        return False
    # A call's own arguments may be kept in a mapping, X and y among them.
    others = [each for name, each in value.items() if name not in ("X", "y")]
    # Tables alone: a target has as many rows, and was not cut.
    heights = [each.shape[0] for each in others if len(getattr(each, "shape", ())) == 2]
    return n_rows in heights or any(_holds(each, n_rows) for each in others)
