"""A party after it has shared: its map f_k, at home and on disk, and predictions with the models it gets back."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import sklearn
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from .._by_name import OBFUSCATORS
from .._encoder import TableEncoder
from .._frames import has_numbers_alone, plain_column, plain_table, spelt_otherwise
from .._validation import FloatArray, PartyName, check_representation, check_single_targets, count_missing, require
from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import (
    AgreementError,
    DataCollabError,
    ExchangeError,
    NumericalError,
    ObfuscationError,
    RepresentationError,
)
from ..model import PartyModel


@dataclass(frozen=True)
class TableForm:
    """The layout of the table that a party's obfuscator was fitted on."""

    n_columns: int | None
    columns: list[str] | None
    library: str | None

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return the form of an array-like or frame."""
        shape = np.shape(X)
        names = list(getattr(X, "columns", []))
        # Names that are numbers may be places by chance, so columns are only sought by texts.
        are_texts = bool(names) and all(isinstance(name, str) for name in names)
        return cls(
            n_columns=shape[1] if len(shape) == 2 else None,
            columns=names if are_texts else None,
            library=type(X).__module__.partition(".")[0] if names else None,
        )

    def bring(self, table: Any, party: PartyName) -> Any:
        """Return a frame's rows with the columns seen in fit, in that order; arrays stay as they are."""
        if self.columns is None or not hasattr(table, "columns"):
            return table
        names = list(table.columns)
        if names == self.columns:
            return table
        missing = [name for name in self.columns if names.count(name) != 1]
        if missing:
            raise ObfuscationError(
                f"Party {party!r}: {len(missing)} of the {len(self.columns)} columns seen in fit are not there, or "
                f"there twice: {missing[:10]!r}. Name the columns as in fit; others are left out. Nothing left the "
                "party."
            )
        return table[self.columns]


def check_one_per_row(party: PartyName, target: NDArray[Any], n_rows: int, name: str) -> None:
    """Raise AgreementError unless targets are one for each row, and none is missing."""
    # Times to events and effects have fields, several values each.
    if target.dtype.names is None:
        check_single_targets(target, f"Party {party!r}: {name}", AgreementError)
    if target.shape != (n_rows,):
        raise AgreementError(
            f"Party {party!r}: {name} must have one entry per row, shape ({n_rows},); got {target.shape}."
        )
    if n_missing := count_missing(target):
        raise AgreementError(
            f"Party {party!r}: {n_missing} of {n_rows} entries of {name} are missing (None or NaN); leave out rows "
            "without a target."
        )


class PartyPredictor:
    """The composed model h(g_k(f_k(x))) on the party's raw columns; `Party.predictor` makes it.

    It takes tables in the form of `Party.fit`, and arrays with the columns in the same order.  It holds the secret map
    f_k, so it stays with the party.  Called with rows, it returns numbers, which packages such as shap explain: the
    probability of each class, shape (n_rows, n_classes), where the model has them, and predictions, shape (n_rows,),
    elsewhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,) or None
        None if the model has no probabilities.
    feature_names_in_ : list of str or None
        None if the table had no names.
    """

    def __init__(
        self, obfuscate: Callable[[Any], FloatArray], model: PartyModel, form: TableForm, party: PartyName
    ) -> None:
        self._obfuscate = obfuscate
        self._model = model
        self._form = form
        self._party = party
        self.classes_: NDArray[Any] | None = None
        if hasattr(model.estimator, "predict_proba"):
            self.classes_ = np.asarray(model.estimator.classes_)
        self.feature_names_in_ = form.columns

    def log_odds(self, X: Any) -> FloatArray:
        """Return log odds of each class against all others, shape (n_rows, n_classes).

        Raise AgreementError if the model has no probabilities, and NumericalError if one is 0 or 1.
        """
        if self.classes_ is None:
            raise AgreementError(
                f"Party {self._party!r}: the model, a {type(self._model.estimator).__name__}, gives no probabilities."
            )
        probabilities = self(X)
        if (probabilities <= 0).any() or (probabilities >= 1).any():
            raise NumericalError(
                f"Party {self._party!r}: the model gives probabilities of 0 or 1, which have no log odds. Explain "
                "probabilities."
            )
        return np.asarray(np.log(probabilities) - np.log1p(-probabilities))

    def __call__(self, X: Any) -> FloatArray:
        """Return numbers to be explained: probabilities, shape (n_rows, n_classes), or predictions, shape (n_rows,)."""
        table = self._form.bring(plain_table(X, f"Party {self._party!r}: the table"), self._party)
        rows = self._obfuscate(self._name_columns(table))
        predict = self._model.predict
        if self.classes_ is not None:
            predict = self._model.predict_proba
        numbers = np.asarray(predict(rows))
        if numbers.dtype.kind not in "biuf":
            raise AgreementError(
                f"Party {self._party!r}: the model predicts names of classes, which cannot be added. It needs "
                "probabilities."
            )
        if not np.isfinite(numbers).all():
            raise NumericalError(f"Party {self._party!r}: the model has answers that are not finite.")
        return numbers.astype(np.float64)

    def _name_columns(self, X: Any) -> Any:
        """Return an array under the names that the columns had in `fit`, if it had any."""
        names = self._form.columns
        if names is None or not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != len(names):
            return X
        columns = list(X.T)
        # Explainers mask rows of several types in an array of objects; as lists, columns get types of their own again.
        if X.dtype.kind not in "biuf":
            columns = [column.tolist() for column in columns]
        return importlib.import_module(str(self._form.library)).DataFrame(dict(zip(names, columns, strict=True)))

    def __repr__(self) -> str:
        return f"PartyPredictor(party={self._party!r}, {type(self._model.estimator).__name__})"


class LocalParty:
    """The part of a `Party` that is kept on its disk: the fitted f_k, without rows, defences or anything to share.

    `local_party` makes it.  Nothing leaves it.  The obfuscator may hold the raw table (kernel PCA and UMAP do).
    """

    _filler: TableEncoder | None = None

    def __init__(self, name: PartyName, obfuscator: Any, *, rotation: FloatArray | None, form: TableForm) -> None:
        self.name = name
        self.obfuscator = obfuscator
        self._obfuscator = obfuscator
        self._rotation = rotation
        self._form = form

    def obfuscate(self, X: ArrayLike) -> FloatArray:
        """Return intermediate representations f_k(X) of any rows, shape (n_rows, n_intermediate), before any defence.

        Raise ObfuscationError if the rows do not fit the obfuscator.
        """
        self._check_fitted()
        return self._obfuscate(self._obfuscator, self._rotation, X, "representation")

    def transform(self, X: ArrayLike, model: PartyModel) -> FloatArray:
        """Return collaboration representations g_k(f_k(X)) of new rows, shape (n_rows, n_components)."""
        return self.check_model(model).transform(self.obfuscate(X))

    def predict(self, X: ArrayLike, model: PartyModel) -> NDArray[Any]:
        """Predict new rows alone, h(g_k(f_k(X))), shape (n_rows,), by the model that the analyst made for this party.

        Raise AgreementError if the model was made for another party, and ObfuscationError if the rows do not fit the
        obfuscator.
        """
        return self.check_model(model).predict(self.obfuscate(X))

    def predict_proba(self, X: ArrayLike, model: PartyModel) -> FloatArray:
        """Return class probabilities of new rows, shape (n_rows, n_classes)."""
        return self.check_model(model).predict_proba(self.obfuscate(X))

    def predictor(self, model: PartyModel) -> PartyPredictor:
        """Return h(g_k(f_k(x))) as one function of the party's raw columns, for packages that explain models.

        With shap, give the anchor as the background, from which all parties then measure::

            shap.Explainer(party.predictor(model), anchor)(X)

        The parameter and the error are those of `predict`.
        """
        return PartyPredictor(self.obfuscate, self.check_model(model), self._form, self.name)

    def predict_survival(self, X: ArrayLike, model: PartyModel, times: ArrayLike) -> FloatArray:
        """Return probabilities of no event up to each time, shape (n_rows, n_times); `predict` gives the log risk.

        Times are in the unit that was agreed on.  Raise, besides the errors of `predict`, AttributeError if the model
        is no survival model, and ValueError if a time is beyond the observation.
        """
        return self.check_model(model).predict_survival(self.obfuscate(X), times)

    def check_model(self, model: PartyModel) -> PartyModel:
        """Return a model that was made for this party; raise TypeError or AgreementError for anything else."""
        self._check_fitted()
        if not isinstance(model, PartyModel):
            raise TypeError(f"Expected a PartyModel (see Collaboration.party_model), got {type(model).__name__}.")
        if model.party != self.name:
            raise AgreementError(
                f"Party {self.name!r} was given the model made for {model.party!r}; ask the analyst for its own."
            )
        return model

    def _obfuscate_anchor(self, anchor: ArrayLike) -> FloatArray:
        self._check_fitted()
        return self._obfuscate(self._obfuscator, self._rotation, anchor, "anchor representation")

    def _plain(self, X: Any, what: str = "the table") -> Any:
        try:
            return plain_table(X, f"Party {self.name!r}: {what}", ObfuscationError)
        except ObfuscationError as error:
            raise ObfuscationError(f"{error} Nothing left the party.") from None

    def _obfuscate(self, obfuscator: Any, rotation: FloatArray | None, X: Any, what: str) -> FloatArray:
        X = self._plain(X, "the anchor" if what.startswith("anchor") else "the table")
        try:
            # Of a map that was fitted on numbers alone, later rows may have gaps.
            if self._filler is not None and not has_numbers_alone(X):
                X = self._filler.transform(X)
            rows = obfuscator.transform(X)
        except Exception as error:
            raise self._obfuscation_error(obfuscator, "transform", X, error) from None
        try:
            representation = check_representation(rows, self.name, what=what)
        except RepresentationError as error:
            raise ObfuscationError(f"{error} Nothing left the party.") from None
        if rotation is None:
            return representation
        return representation @ rotation

    def _obfuscation_error(self, obfuscator: Any, step: str, X: Any, error: Exception) -> ObfuscationError:
        """Return an error without the obfuscator's own words, unless those are known to show no data."""
        # The package's own encoder names columns and counts, and quotes no entry.
        if isinstance(error, AgreementError) and str(error).startswith(f"Party {self.name!r}: the table"):
            return ObfuscationError(f"{error} Nothing left the party.", error)
        if isinstance(error, DataCollabError):
            reasons = str(error)
        else:
            # Looking for reasons must not raise anything of its own, which would quote what it stumbled over.
            reasons = ""
            with suppress(Exception):
                reasons = " ".join(f"Likely, {reason}" for reason in list_likely_reasons(obfuscator, X, step))
            reasons = reasons or "Try its fit and transform on made-up rows of the same kind."
        return ObfuscationError(
            f"Party {self.name!r}: the obfuscator {type(self.obfuscator).__name__} failed in {step} on a table of "
            f"shape {np.shape(X)} ({type(error).__name__}). {reasons} Nothing left the party. The obfuscator's own "
            "words may quote data, so they are only in the error's 'original'.",
            error,
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "_obfuscator"):
            raise NotFittedError(f"Party {self.name!r} has no rows yet: call fit(X, y) first.")

    def __repr__(self) -> str:
        return f"LocalParty({self.name!r})"


def list_components(obfuscator: Any) -> list[int]:
    """Return all whole-numbered parameters called n_components, also of nested steps."""
    return [
        value
        for name, value in obfuscator.get_params(deep=True).items()
        if name.rpartition("__")[2] == "n_components" and isinstance(value, int)
    ]


def list_likely_reasons(obfuscator: Any, X: Any, step: str) -> list[str]:
    """Return sentences on why an obfuscator refused a table, about shapes, names and types; they quote no entry."""
    shape = np.shape(X)
    if len(shape) != 2:
        return [f"it has shape {shape} instead of rows and columns."]
    reasons = [*_column_differences(obfuscator, X, shape), *_unusable_columns(obfuscator, X)]
    encoder = getattr(obfuscator, "steps", [("", None)])[0][1]
    n_columns = shape[1]
    # Categories become several columns, so there may be more components than the table has columns.
    if isinstance(encoder, TableEncoder):
        n_columns = encoder.transform(X).shape[1]
    most = max(list_components(obfuscator), default=0)
    if step == "fit" and most > min(shape[0], n_columns):
        reasons.append(f"n_components={most} is more than its {shape[0]} rows or {n_columns} columns allow. Lower it.")
    return reasons


def _column_differences(obfuscator: Any, X: Any, shape: tuple[int, ...]) -> list[str]:
    expected = list(getattr(obfuscator, "feature_names_in_", []))
    if expected and hasattr(X, "columns"):
        names = list(X.columns)
        missing = [name for name in expected if name not in names]
        if missing:
            return [f"it lacks the columns {missing[:10]!r}.{spelt_otherwise(missing, names)}"]
        if names != expected and sorted(map(str, names)) == sorted(map(str, expected)):
            return ["its columns come in another order than in fit."]
    n_features = getattr(obfuscator, "n_features_in_", shape[1])
    if n_features == shape[1]:
        return []
    return [f"it has {shape[1]} columns, but {n_features} in fit."]


def _unusable_columns(obfuscator: Any, X: Any) -> list[str]:
    """Return counts of gaps and texts, unless the obfuscator's first step takes columns by their kind."""
    _, first = getattr(obfuscator, "steps", [("", obfuscator)])[0]
    if hasattr(first, "transformers") or isinstance(first, TableEncoder):
        return []
    if hasattr(X, "columns"):
        columns = [plain_column(X[name]) for name in X.columns]
    else:
        columns = [plain_column(column) for column in np.asarray(X).T]
    n_missing = [missing for column in columns if (missing := count_missing(column))]
    n_texts = sum(column.dtype.kind not in "biufc" for column in columns)
    reasons = []
    if n_missing:
        reasons.append(f"values are missing in {len(n_missing)} of its columns ({sum(n_missing)} entries).")
    if n_texts:
        reasons.append(f"{n_texts} of its columns do not hold numbers.")
    return reasons


def gaps(estimator: Any) -> dict[str, list[int]]:
    """Return strides of those arrays in a fitted estimator that have gaps, which a file does not keep.

    Without them the linear algebra below NumPy adds in another order, and the last bits of its results differ.
    """
    strides = {}
    for number, (attributes, name) in enumerate(_arrays(estimator)):
        array = attributes[name]
        if array.dtype.kind == "f" and array.size and not (array.flags.c_contiguous or array.flags.f_contiguous):
            # By number, as names may stand twice in an estimator of several parts.
            strides[str(number)] = list(array.strides)
    return strides


def with_gaps(estimator: Any, strides: dict[str, list[int]]) -> None:
    """Put the gaps back into the arrays of an estimator, in place."""
    places = list(_arrays(estimator))
    for number, distances in strides.items():
        attributes, name = places[int(number)]
        attributes[name] = _spread(attributes[name], distances)


def _spread(array: NDArray[Any], strides: list[int]) -> NDArray[Any]:
    """Return the same entries with the given distances between them."""
    order = sorted(range(array.ndim), key=lambda axis: abs(strides[axis]))
    # Each axis must step over all that the shorter steps reach, or entries would share memory.
    reach = array.itemsize
    for axis in order:
        if strides[axis] % array.itemsize or (array.shape[axis] > 1 and abs(strides[axis]) < reach):
            raise ValueError("entries of an array overlap")
        reach += (array.shape[axis] - 1) * abs(strides[axis])
    # Where steps go backwards, the first entry lies behind the others.
    first = sum((length - 1) * -step for length, step in zip(array.shape, strides, strict=True) if step < 0)
    memory = np.zeros(reach // array.itemsize, dtype=array.dtype)
    spread = as_strided(memory[first // array.itemsize :], array.shape, strides)
    spread[...] = array
    return spread


def _arrays(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield where the arrays of an estimator and of its parts are, always in the same order."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, BaseEstimator):
        attributes = vars(value)
        for name in sorted(attributes):
            if isinstance(attributes[name], np.ndarray):
                yield attributes, name
            else:
                yield from _arrays(attributes[name])


OBFUSCATOR = "obfuscator.skops"
ROTATION = "rotation.safetensors"
OWN_TYPES = frozenset(
    [f"{TableEncoder.__module__}.{TableEncoder.__qualname__}", "numpy.dtype"]
    + [entry.home for entry in OBFUSCATORS.values() if entry.home.startswith("datacollab.")]
)
"""Types that may be constructed besides those of scikit-learn and NumPy that skops itself trusts."""


def party_state(party: LocalParty) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of a fitted party, for later predictions; `local_party` reads them.

    Neither its rows nor their targets are in it, unless the obfuscator holds them: kernel PCA and UMAP do.  JSON can
    hold the facts.

    Raise NotFittedError if the party has no rows yet, STATE_UNSUPPORTED if the obfuscator cannot be stored, and
    MissingExtraError if skops or safetensors is not installed.
    """
    party._check_fitted()
    form = party._form
    obfuscator = party._obfuscator
    facts = {
        "party": party.name,
        "form": {"n_columns": form.n_columns, "columns": form.columns, "library": form.library},
        "gaps": gaps(obfuscator),
        "sklearn": sklearn.__version__,
    }
    members = {OBFUSCATOR: _dump_obfuscator(obfuscator, party)}
    if party._rotation is not None:
        # Files hold arrays row by row; the last bits of a product depend on how its factors lie in memory.
        facts["rotation_order"] = "C" if party._rotation.flags.c_contiguous else "F"
        members[ROTATION] = arrays_to_bytes({"rotation": party._rotation})
    return facts, members


def local_party(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> LocalParty:
    """Return a party that predicts, from facts and members of `party_state`.

    It transforms every row to the same bits as the party did, on the same machine and versions.

    Raise STATE_DAMAGED if they are not those of `party_state`, VERSION_MISMATCH if they come from another version of
    scikit-learn, and MissingExtraError if skops or safetensors is not installed.
    """
    require("skops.io", "exchange")
    _check_version(facts)
    try:
        obfuscator = from_skops(members[OBFUSCATOR], OWN_TYPES)
        with_gaps(obfuscator, facts["gaps"])
        rotation = None
        if ROTATION in members:
            stored = bytes_to_arrays(members[ROTATION], what="the rotation")["rotation"]
            rotation = np.asarray(stored, dtype=np.float64, order=facts["rotation_order"])
        return LocalParty(facts["party"], obfuscator, rotation=rotation, form=TableForm(**facts["form"]))
    # Skops and NumPy raise many kinds of errors for damaged contents, and may quote them.
    except Exception as error:
        raise _refuse_state(type(error).__name__) from None


def _dump_obfuscator(obfuscator: Any, party: LocalParty) -> bytes:
    require("skops.io", "exchange")
    steps = [obfuscator, *obfuscator.get_params(deep=True).values()]
    # Only `UMAPObfuscator` has this choice.
    if any(getattr(step, "out_of_sample", None) == "umap" for step in steps):
        raise ExchangeError(
            "STATE_UNSUPPORTED",
            f"Party {party.name!r}: umap-learn's own transform cannot be stored, nor does it map a row by itself. "
            "Take out_of_sample='row-wise'. Nothing left the party.",
        )
    reason = None
    try:
        data, untrusted = to_skops(obfuscator, OWN_TYPES)
        if untrusted:
            reason = f"is made of types that would not be read again: {untrusted[:10]}"
    # Transformers of others may fail in any way; their own words may quote data.
    except Exception as error:
        reason = f"{type(party.obfuscator).__name__} cannot be stored ({type(error).__name__})"
    if reason is not None:
        raise ExchangeError(
            "STATE_UNSUPPORTED",
            f"Party {party.name!r}: its obfuscator {reason}. Choose one that datacollab.obfuscator makes. Nothing left "
            "the party.",
        )
    return data


def to_skops(value: Any, types: frozenset[str]) -> tuple[bytes, list[str]]:
    """Return an object as skops writes it, and the types in it that would not be read again."""
    skops_io = require("skops.io", "exchange")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data: bytes = skops_io.dumps(value)
    return data, sorted(set(skops_io.get_untrusted_types(data=data)) - types)


def from_skops(data: bytes, types: frozenset[str]) -> Any:
    """Return the object that `to_skops` wrote; nothing of another type is made."""
    skops_io = require("skops.io", "exchange")
    if unknown := set(skops_io.get_untrusted_types(data=data)) - types:
        raise ValueError(f"{len(unknown)} types are not trusted")
    return skops_io.loads(data, trusted=sorted(types))


def _check_version(facts: Mapping[str, Any]) -> None:
    made_with = facts.get("sklearn")
    installed = sklearn.__version__
    if not isinstance(made_with, str):
        raise _refuse_state("no version")
    # Between releases that change more than the last number, scikit-learn promises no files that can be read.
    if made_with.split(".")[:2] != installed.split(".")[:2]:
        raise ExchangeError(
            "VERSION_MISMATCH",
            f"The stored map f_k of this party was made with another version of scikit-learn than {installed}. Install "
            "the one that it was shared with, or share again.",
        )


def _refuse_state(reason: str) -> ExchangeError:
    return ExchangeError(
        "STATE_DAMAGED",
        f"The stored map f_k of this party cannot be read ({reason}). Restore the file from a backup, or share again.",
    )
