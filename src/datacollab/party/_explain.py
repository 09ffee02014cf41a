"""Explain a party's composed model on its raw columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from .._validation import FloatArray
from ..errors import AgreementError, NumericalError, UnidentifiedColumnsWarning
from ..model import PartyModel
from ._columns_of_tables import ColumnTable, Players, checked_table
from ._explanation import Explanation
from ._identification import AFFINE_R2, OTHER_R2, faded_share, is_additive, r2_of_columns, smallest_of_groups
from ._inference import LocalInference
from ._masked_model import MaskedModel

__all__ = ["MOST_EXACT", "explained"]

MOST_EXACT = 10
"""Columns up to which all coalitions are taken, where nothing else is said."""
OUTPUTS = ("auto", "prediction", "probability", "log-odds")
_N_MASKED = 1_000


def explained(
    party: LocalInference,
    X: Any,
    model: PartyModel,
    *,
    background: Any,
    columns: Mapping[str, Sequence[str | int]] | None,
    output: str,
    n_permutations: int | None,
    n_background: int,
    random_state: int | np.random.RandomState | None,
    n_jobs: int | None,
    progress: Callable[[str], None] | None,
) -> Explanation:
    """What `explain` of a party does; see there."""
    form, name = party._form, party.name
    _check(party, output, n_permutations, n_background, model)
    rows = checked_table(X, form, name)
    anchor = ColumnTable.of(background, form, name)
    # Evenly spaced: the same at every party, without a number that all have to agree on.
    chosen = np.unique(np.linspace(0, len(anchor) - 1, min(n_background, len(anchor))).round().astype(np.intp))
    n_rows, players = np.shape(rows)[0], Players.of(columns, anchor.names, name)
    table = ColumnTable.of(rows, form, name, below=anchor.taken(chosen))
    answer, output_names = _answers(party, model, output)
    masked = MaskedModel(answer, table, n_rows, players)

    number = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    seeds = np.random.SeedSequence(number).spawn(n_rows + 1)
    exact = n_permutations is None and len(players) <= MOST_EXACT
    pairs = 1 if n_permutations is None else n_permutations

    def one_row(row: int) -> FloatArray:
        return masked.exact(row) if exact else masked.along_paths(row, pairs, np.random.default_rng(seeds[row]))

    # Threads: what a party keeps secret stays in this process.
    values = []
    for done in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(one_row)(row) for row in range(n_rows)
    ):
        values.append(done)
        if progress is not None:
            progress(f"row {len(values)} of {n_rows}")

    whole = anchor.table()
    representation = party.transform(whole, model)
    told = smallest_of_groups(r2_of_columns(anchor, representation), players.of_column)
    affine = is_additive(anchor, lambda X: party.transform(X, model))
    identified = told >= (AFFINE_R2 if affine else OTHER_R2)
    made_up = masked.sample(_N_MASKED, np.random.default_rng(seeds[-1]))
    _warn(party, players, identified)
    stacked, base = np.stack(values), masked.base_values
    return Explanation(
        party=name,
        values=stacked[:, :, 0] if output_names is None else stacked,
        base_values=float(base[0]) if output_names is None else base,
        data=rows,
        feature_names=players.names,
        output_names=output_names,
        identified=identified,
        r2=told,
        faded=faded_share(representation, party.transform(made_up, model)),
        exact=exact,
    )


def _check(
    party: LocalInference, output: str, n_permutations: int | None, n_background: int, model: PartyModel
) -> None:
    party._own(model)
    if output not in OUTPUTS:
        raise ValueError(f"Party {party.name!r}: output must be one of {OUTPUTS}; got {output!r}.")
    for what, value in (("n_permutations", n_permutations), ("n_background", n_background)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"Party {party.name!r}: {what} must be a whole number from 1 on; got {value!r}.")


def _answers(
    party: LocalInference, model: PartyModel, output: str
) -> tuple[Callable[[Any], FloatArray], tuple[str, ...] | None]:
    """The function to explain, with answers of shape (n_rows, n_outputs), and names of its outputs."""
    gives_probabilities = hasattr(model.estimator, "predict_proba")
    if output == "auto":
        output = "probability" if gives_probabilities else "prediction"
    if output == "prediction":
        return lambda X: _numbers(party, party.predict(X, model))[:, None], None
    if not gives_probabilities:
        raise AgreementError(
            f"Party {party.name!r}: the model, a {type(model.estimator).__name__}, gives no probabilities. Take "
            "output='prediction'."
        )
    names = tuple(str(each) for each in model.estimator.classes_)

    def probabilities(X: Any) -> FloatArray:
        return _numbers(party, party.predict_proba(X, model))

    def log_odds(X: Any) -> FloatArray:
        found = probabilities(X)
        if (found <= 0).any() or (found >= 1).any():
            raise NumericalError(
                f"Party {party.name!r}: the model gives probabilities of 0 or 1, which have no log odds. Take "
                "output='probability'."
            )
        return np.asarray(np.log(found) - np.log1p(-found))

    return probabilities if output == "probability" else log_odds, names


def _numbers(party: LocalInference, answers: Any) -> FloatArray:
    found = np.asarray(answers)
    if found.dtype.kind not in "biuf":
        raise AgreementError(
            f"Party {party.name!r}: the model predicts names of classes, which cannot be added. It needs probabilities."
        )
    if not np.isfinite(found).all():
        raise NumericalError(f"Party {party.name!r}: the model has answers that are not finite for masked rows.")
    return found.astype(np.float64)


def _warn(party: LocalInference, players: Players, identified: Any) -> None:
    missing = [name for name, told in zip(players.names, identified, strict=True) if not told]
    if missing:
        warnings.warn(
            f"Party {party.name!r}: {len(missing)} of {len(players)} columns are not identified: {missing[:10]!r}. The "
            "collaboration representation does not tell them from others, so their values say what the model "
            "computes, not what each column brings. Ask for more components, or read them together as a group.",
            UnidentifiedColumnsWarning,
            stacklevel=5,
        )
