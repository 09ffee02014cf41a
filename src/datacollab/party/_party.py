"""A party: obfuscate, defend, share once, combine or distil the answer, forget."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from .._by_name import takes_numbers_alone
from .._encoder import TableEncoder
from .._frames import has_numbers_alone, plain_column
from .._notebooks import card, chain, class_names, table
from .._threads import one_thread
from .._validation import FloatArray, PartyName, fresh_generator
from ..errors import AgreementError, ForgottenError, ObfuscationError, PrivateRowsWarning, RepeatableSecretWarning
from ..model import AnchorPredictions, PartyModel
from ..own import (
    DistilledModel,
    LocalParty,
    PersonalModel,
    TableForm,
    check_one_per_row,
    distil_predictions,
    list_components,
    personalise,
)
from ..share import Share
from ..targets import (
    TargetKind,
    check_class_names,
    coarsen_times,
    named_target,
    no_target,
    target_kind,
    usual_time_step,
)
from ._defence import Defence
from ._defended_rows import DefendedRows, RowDigests, TableDigest
from ._guarantee import Basis, FittedTables, PrivacyGuarantee, obstacle_before, obstacle_in


def generator_for(purpose: int, random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """Return a generator for one of several purposes, whose numbers have nothing to do with those of the others."""
    if random_state is None:
        return fresh_generator()
    if isinstance(random_state, np.random.RandomState):
        entropy: Any = random_state.randint(np.iinfo(np.int32).max, size=4).tolist()
    else:
        entropy = int(random_state)
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(entropy, spawn_key=(purpose,))))


def secretly_seeded(obfuscator: Any) -> Any:
    """Return a clone in which each random_state that is None comes from the operating system."""
    copy = clone(obfuscator)
    # scikit-learn reads None as NumPy's global generator, which any np.random.seed(0) makes predictable.
    for name, value in _random_states(copy).items():
        if value is None:
            copy.set_params(**{name: fresh_generator()})
    return copy


def _random_states(obfuscator: Any) -> dict[str, Any]:
    parameters = obfuscator.get_params(deep=True)
    return {name: value for name, value in parameters.items() if name.rpartition("__")[2] == "random_state"}


def check_target(party: PartyName, X: Any, y: ArrayLike | None) -> NDArray[Any]:
    """Return targets as an array of shape (n_samples,), with fields where there are none or several values each."""
    n_samples = _num_samples(X)
    target = no_target(n_samples) if y is None else plain_column(y)
    check_one_per_row(party, target, n_samples, "y")
    try:
        return named_target(target)
    except AgreementError as error:
        raise AgreementError(f"Party {party!r}: y: {error}") from None


def time_step_for(party: PartyName, target: NDArray[Any], time_step: float | str | None) -> float | None:
    """Return the step that times are rounded up to before they are shared; None if they are not."""
    if time_step is None:
        return None
    # Neither other texts nor NaN are a step.
    if time_step != "auto" and (isinstance(time_step, str) or not 0 < time_step < np.inf):
        raise ValueError(
            f"Party {party!r}: time_step must be 'auto', a number above 0 in the unit of the times, or None, which "
            f"shares them as they are; got {time_step!r}."
        )
    if "time" not in (target.dtype.names or ()):
        return None
    if not isinstance(time_step, str):
        return float(time_step)
    return usual_time_step(target["time"], target["event"].astype(bool))


SUBSAMPLE = 0.5
"""Part of the public rows that a party's obfuscator is fitted on."""


def public_subsample(public: Any, obfuscator: Any, generator: np.random.RandomState, party: PartyName) -> Any:
    """Draw half of the public rows, but at least two more than the obfuscator has components."""
    if len(np.shape(public)) != 2:
        raise TypeError(
            f"Party {party!r}: fit_on must be public rows, an array or frame of shape (n_rows, n_features); got "
            f"{type(public).__name__} of shape {np.shape(public)}."
        )
    n_rows = _num_samples(public)
    # UMAP, which asks for the most rows, needs two more than components.
    least = max(list_components(obfuscator), default=0) + 2
    if n_rows < least:
        raise ObfuscationError(
            f"Party {party!r}: fit_on has {n_rows} rows, but it needs {least} at least, two more than the obfuscator "
            "has components. Give more public rows, or lower n_components. Nothing left the party."
        )
    chosen = generator.permutation(n_rows)[: max(ceil(SUBSAMPLE * n_rows), least)]
    return _safe_indexing(public, chosen)


def random_rotation(n_columns: int, generator: np.random.RandomState) -> FloatArray:
    """Draw an orthogonal matrix uniformly from rotations and reflections, shape (n_columns, n_columns)."""
    Q, R = np.linalg.qr(generator.standard_normal((n_columns, n_columns)))
    # Without the signs of R, the signs would be those that the factorisation happens to choose.
    return np.asarray(Q * np.sign(np.diag(R)))


# Purposes of random numbers, which have nothing to do with one another.
_SUBSAMPLE, _ROTATION, _DEFENCES = range(3)


class Party(LocalParty):
    """One party, with its private rows behind a secret map f_k.

    Parameters
    ----------
    name : str or int
        The party's name on the other side.
    obfuscator : transformer
        f_k: any scikit-learn transformer that maps each row by itself; cloned before it is fitted.  See
        `datacollab.obfuscator`, and `datacollab.testing.check_obfuscator` for one of your own.
    fit_on : array-like or dataframe of shape (n_public, n_features), optional
        Public rows or the anchor, with the columns of the private table.  The obfuscator, with every scaler in it, is
        fitted on a secret random half of them, and a secret random rotation or reflection follows.  None fits it on
        the private rows, which it then betrays under any defences.
    defences : sequence of Defence, default=()
        Applied in turn to the representation of the own rows, once per `fit`; see `Microaggregation`, `GaussianNoise`
        and `GaussianMechanism`.  The anchor's representation and the own predictions are not touched.
    shuffle : bool, default=True
        Whether the rows leave in a random order, so that their position tells nothing.  It is drawn once per fit.
    share_again : bool, default=False
        With `defences`: whether rows that this object has shared already may be shared again after another `fit`.
    time_step : float, "auto" or None, default="auto"
        Times to events are rounded up to its multiples before they leave.  "auto" takes the largest of 1, 2, 3 and
        5 times a power of ten such that the longest time has sixty, months of five years, and the median time of an
        event three.  None shares them as they are, when a row's own time may tell whose it is.
    random_state : int, RandomState or None, default=None
        Of the row order, and of the secrets of `fit_on` and `defences`.  None draws from the operating system, as a
        secret should be; a number is for experiments.

    Notes
    -----
    Leaves the party: the `Share`.  Stays: the rows, the anchor and the fitted obfuscator, which may hold the
    raw table (kernel PCA and UMAP do).

    Fit once and share that.  A second party object, or a second `fit`, draws noise anew for the same rows, and a
    reader of both shares averages it away.  An object refuses to share rows that it shared after an earlier fit, unless
    `share_again` says so; then `guarantee` adds the promises up.  It knows nothing of other objects.

    Examples
    --------
    >>> import datacollab as dc
    >>> X, y = dc.datasets.load("digits")
    >>> party = dc.Party("hospital-a", dc.obfuscator("pca", n_components=8)).fit(X[:100], y[:100])
    >>> party.share(X[100:150])
    Share(party='hospital-a', representation=(100, 8), anchor_representation=(50, 8), target=(100,), anchor_target=None)
    """

    _forgotten = False
    _target: NDArray[Any]
    _shared: NDArray[np.intp] | None
    _time_step: float | None

    def __init__(
        self,
        name: PartyName,
        obfuscator: Any,
        *,
        fit_on: Any = None,
        defences: Sequence[Defence] = (),
        shuffle: bool = True,
        share_again: bool = False,
        time_step: float | str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.name = name
        self.obfuscator = obfuscator
        self.fit_on = fit_on
        self.defences = defences
        self.shuffle = shuffle
        self.share_again = share_again
        self.time_step = time_step
        self.random_state = random_state
        self._fitted_tables = FittedTables()

    @one_thread
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the obfuscator, on the party's own rows or `fit_on`, and apply the defences.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes or numbers, or times to events and effects as `datacollab.targets` makes them.  None if there is
            nothing to predict, as for clusters.

        Raises
        ------
        TypeError, AgreementError, ObfuscationError
            If the obfuscator is no transformer or fails, `fit_on` is no table or too short, `defences` is no sequence
            of them or cannot be applied, or `y` has not one entry per row.

        Warns
        -----
        RepeatableSecretWarning, PrivateRowsWarning, SuppressedRowsWarning
            If a secret comes from a known number, own rows are in `fit_on`, or a defence keeps rows from being shared.
        """
        self._check_not_forgotten()
        self._check_parameters()
        X = self._plain(X)
        target = check_target(self.name, X, y)
        check_class_names(target, f"Party {self.name!r}: y")
        step = time_step_for(self.name, target, self.time_step)
        # Obfuscators that look at targets, as some of scikit-learn do, take classes and numbers alone.
        single = target if target_kind(target) is TargetKind.SINGLE else None
        fitted, filler = self._fit_obfuscator(X, single)
        representation = self._obfuscate(fitted, None, X, "representation")
        rotation = None
        if self.fit_on is not None:
            # Anyone can fit nearly the same map on public rows; the rotation is the party's own.
            rotation = random_rotation(representation.shape[1], generator_for(_ROTATION, self.random_state))
            representation = representation @ rotation
        defences = tuple(clone(defence) for defence in self.defences)
        basis = self._basis_of_guarantee(fitted, defences, X)
        # Without defences no number is drawn from the generator of the other secrets.
        noise = generator_for(_DEFENCES, self.random_state) if defences else fresh_generator()
        shown = target if step is None else coarsen_times(target, step)
        release = DefendedRows(self.name, representation, shown, defences, noise)
        # Assigned together, at the end: a failure leaves a party that can share nothing.
        digests = (TableDigest(X), TableDigest(target[:, None]))
        self._form = TableForm.of(X)
        self._table, self._targets = digests
        self._release = release
        self._basis = basis
        self._obfuscator = fitted
        self._rotation = rotation
        self._filler = filler
        self._target = target
        self._time_step = step
        self._shared = None
        return self

    def share(self, anchor: ArrayLike, anchor_target: ArrayLike | None = None) -> Share:
        """Obfuscate the own rows and the anchor: all that leaves this party.

        Parameters
        ----------
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            The same rows in the same order at every party.
        anchor_target : array-like of shape (n_anchors,), optional
            Targets of the anchor rows, where assigned.

        Raises
        ------
        AnchorError, SharedBeforeError
            If a defence depends on the anchor, and the rows were shared with another one before; if rows were shared
            after an earlier fit of this object.
        ObfuscationError, ShareError
            If the anchor does not fit the obfuscator, a defence cannot be applied, or targets do not fit the rows.
        """
        return self.share_with_order(anchor, anchor_target)[0]

    @one_thread
    def share_with_order(
        self, anchor: ArrayLike, anchor_target: ArrayLike | None = None
    ) -> tuple[Share, NDArray[np.intp]]:
        """Return the share, and which own row each shared row comes from.

        For an audit at home, and to join answers for the shared rows to the table.  Parameters and errors are
        those of `share`.  The rows are in the same order with every call.  That order, positions in the table of `fit`
        of shape (n_published,), stays here; rows that a defence suppresses are missing.
        """
        anchor_representation = self._obfuscate_anchor(anchor)
        self._basis.check_first_share(allowed=self.share_again)
        published = self._release.rows(anchor_representation)
        order = np.arange(len(published.rows))
        if self.shuffle:
            generator = fresh_generator()
            if self.random_state is not None:
                generator = check_random_state(self.random_state)
            order = self._release.order(generator)
        share = Share(
            party=self.name,
            representation=published.rows[order],
            anchor_representation=anchor_representation,
            target=published.target[order],
            anchor_target=None if anchor_target is None else plain_column(anchor_target),
            one_to_one=self._basis.table is None,
        )
        # Entered last: a share that was refused has not left.
        self._basis.note_left(self._plain(anchor, "the anchor"), anchor_representation)
        self._shared = own_rows = published.own_rows[order]
        return share, own_rows

    def was_fitted_on(self, X: ArrayLike, y: ArrayLike | None = None) -> bool:
        """Return whether these are the rows of `fit`, and the targets if given, in the same order and columns."""
        self._check_fitted()
        same = self._table.matches(self._plain(X))
        return same and (y is None or self._targets.matches(np.reshape(plain_column(y), (-1, 1))))

    def guarantee(self, anchor: ArrayLike) -> PrivacyGuarantee:
        """Return differential privacy of the share with this anchor, where there is any.

        From then on, defences that depend on the anchor take no other one.  Raise NoGuaranteeError, with the reason, if
        no epsilon can be stated; AnchorError if the rows were shared with another anchor; and ObfuscationError if the
        anchor does not fit the obfuscator.
        """
        representation = self._obfuscate_anchor(anchor)
        self._release.check_anchor(representation)
        guarantee = self._basis.guarantee(self._plain(anchor, "the anchor"), representation)
        self._release.bind(representation)
        return guarantee

    @property
    def fitted_target(self) -> NDArray[Any]:
        """Targets of `fit` as the party has them, shape (n_samples,); they stay here."""
        self._check_fitted()
        return self._target

    def shown_target(self, target: ArrayLike) -> NDArray[Any]:
        """Return targets as they are before defences: times rounded up as this party's are, all else as given."""
        self._check_fitted()
        plain = plain_column(target)
        if self._time_step is None:
            return plain
        return coarsen_times(plain, self._time_step)

    def personalise(
        self,
        model: PartyModel,
        X: ArrayLike,
        y: ArrayLike,
        *,
        public: ArrayLike | None = None,
        public_target: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> PersonalModel:
        """Combine the common model with the party's own ones, and report the gain.

        Nothing leaves the party.  Parameters are those of `datacollab.party.personalise`; X and y are those of `fit`.
        Raise, besides its errors, AgreementError if the rows are not those of `fit`, or the model is not of this
        party's share.
        """
        self._check_fitted()
        order = self._shared
        # Left-out predictions are for the rows of the share, so the table has to be the one that was shared.
        if isinstance(model, PartyModel) and model.left_out is not None:
            if order is None:
                raise AgreementError(
                    f"Party {self.name!r} has shared nothing since its fit, so the model cannot be of its share."
                )
            if not self.was_fitted_on(X) or not np.array_equal(plain_column(y), self._target):
                raise AgreementError(
                    f"Party {self.name!r}: the model's left-out predictions are for the rows and targets of fit, in "
                    "their order. Give the same."
                )
        return personalise(
            self,
            model,
            X,
            y,
            order=order,
            public=public,
            public_target=public_target,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )

    def distil(
        self, anchor: ArrayLike, predictions: AnchorPredictions, estimator: Any = None, *, rows: ArrayLike | None = None
    ) -> DistilledModel:
        """Distil a model of one's own from the analyst's predictions for the anchor; it takes raw rows.

        No f_k is needed, here or later, so this works after `forget`, too.

        Parameters
        ----------
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            The rows that were shared, in their order.
        predictions : AnchorPredictions
            Those that the analyst made for this party, by `Collaboration.anchor_predictions`.
        estimator : estimator, optional
            Any regressor, of several numbers at once if predictions are probabilities, or classifier of scikit-learn.
            A classifier learns each row with every class, weighted by its probability, or, if it takes no weights, the
            most probable class alone.  By default `datacollab.party.AnchorRidge`.
        rows : array-like or dataframe of shape (n_rows, n_features), optional
            Rows of one's own, at least ten, to see whether the anchor has rows like them.  They are not learned from.

        Returns
        -------
        DistilledModel

        Raises
        ------
        AgreementError
            If the predictions are another party's, or of another number of rows.
        AnchorError
            If nothing can be learned that would hold: predictions for anchor rows left out differ too much, or the own
            rows lie elsewhere.
        TypeError
            If the estimator is of no use.

        Notes
        -----
        Nothing leaves the party.  Predictions of the anchor's rows as targets of a model on the original columns are of
        [Imakura2021b]_, and a party that forgets is of [Imakura2023b]_.

        Examples
        --------
        >>> import datacollab as dc
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> (X, y), f = dc.datasets.load("digits"), dc.obfuscator("pca", n_components=16)
        >>> parties = [dc.Party(k, f).fit(X[k:300:5], y[k:300:5]) for k in range(5)]
        >>> anchor, analyst = X[300:600], dc.Analyst(dc.KTI(16), RandomForestClassifier(random_state=0))
        >>> collaboration = analyst.fit([party.share(anchor) for party in parties])
        >>> model = parties[0].distil(anchor, collaboration.anchor_predictions(0), rows=X[:300:5])
        >>> bool((model.predict(X[600:]) == y[600:]).mean() > 0.8)
        True
        """
        return distil_predictions(self.name, anchor, predictions, estimator, rows=rows)

    def forget(self) -> str:
        """Destroy f_k, its rotation, the order of the rows, targets, digests and noise, for good; return a record.

        Afterwards nothing can be shared, obfuscated or predicted by a `PartyModel`; `distil` works, and its models do.
        Not reached: the table itself, shares that were sent, copies of this object, files, other references to its
        parts, and memory that was freed but not written over.
        """
        name = self.name
        # Everything, by no list of names, so that nothing is left that a later version adds; a number among the
        # parameters may tell the secrets drawn from it.
        vars(self).clear()
        self.obfuscator = self.fit_on = self.random_state = None
        vars(self).update(defences=(), shuffle=True, share_again=False, time_step="auto", _fitted_tables=FittedTables())
        self.name = name
        self._forgotten = True
        return (
            f"Party {name!r} has forgotten its map f_k with the rotation, the order of its rows, their targets and "
            "digests, and the noise. Copies, files, backups, and what was sent are not reached."
        )

    def _check_parameters(self) -> None:
        if not (hasattr(self.obfuscator, "fit") and hasattr(self.obfuscator, "transform")):
            raise TypeError(
                f"Party {self.name!r}: the obfuscator must be a transformer with fit and transform, such as "
                f"obfuscator('pca'); got {type(self.obfuscator).__name__}."
            )
        is_list = isinstance(self.defences, Sequence)
        defences = self.defences if is_list else [self.defences]
        if not is_list or not all(isinstance(defence, Defence) for defence in defences):
            raise TypeError(
                f"Party {self.name!r}: defences must be a list of them, such as [Microaggregation(k=5)]; got "
                f"{[type(defence).__name__ for defence in defences]}."
            )
        if any(isinstance(seed, Integral) for seed in _random_states(self.obfuscator).values()):
            self._warn_of_seed("the obfuscator has", "rebuild the obfuscation")
        elif isinstance(self.random_state, int | np.integer) and (self.fit_on is not None or self.defences):
            self._warn_of_seed("the party has", "rebuild the rotation and the noise")

    def _warn_of_seed(self, who: str, harm: str) -> None:
        warnings.warn(
            f"Party {self.name!r}: {who} a fixed random_state. Anyone who learns it can {harm}; leave it None outside "
            "experiments.",
            RepeatableSecretWarning,
            stacklevel=4,
        )

    def _fit_obfuscator(self, X: Any, target: NDArray[Any] | None) -> tuple[Any, TableEncoder | None]:
        """Return f_k, from public rows where there are any, and an encoder that fills gaps of later rows for it.

        Public rows come without targets.
        """
        f = secretly_seeded(self.obfuscator)
        rows = X
        if self.fit_on is not None:
            generator = generator_for(_SUBSAMPLE, self.random_state)
            rows = public_subsample(self._plain(self.fit_on, "fit_on"), self.obfuscator, generator, self.name)
            target = None
        encoder = TableEncoder(f"Party {self.name!r}: the table")
        needs_encoder = takes_numbers_alone(f)
        is_plain = has_numbers_alone(X) and has_numbers_alone(rows)
        if needs_encoder and not is_plain:
            f = make_pipeline(encoder, f)
        try:
            f = f.fit(rows, target)
            # A map of numbers works without the encoder, which later rows with gaps need.
            if needs_encoder and is_plain and not sparse.issparse(rows):
                return f, encoder.fit(rows)
            return f, None
        except Exception as error:
            raise self._obfuscation_error(f, "fit", rows, error) from None

    def _basis_of_guarantee(self, fitted: Any, defences: tuple[Defence, ...], X: Any) -> Basis:
        own_rows = None
        n_own = None
        if self.fit_on is not None:
            public = self._plain(self.fit_on, "fit_on")
            own_rows = RowDigests(X, like=public)
            n_own = own_rows.count_in(public)
        if n_own:
            warnings.warn(
                f"Party {self.name!r}: {n_own} of {_num_samples(self.fit_on)} rows in fit_on are also among its "
                "private rows, so the map holds something of them. Take them out of fit_on.",
                PrivateRowsWarning,
                stacklevel=3,
            )
        mechanism, obstacle = obstacle_in(defences)
        if obstacle is None:
            transform = partial(self._obfuscate, fitted, None, what="representation")
            seed = self.random_state
            obstacle = obstacle_before(self.obfuscator, transform, X, n_own_rows=n_own, random_state=seed)
        # Rows that leave as the map has them have no noise that a second share could average away.
        table = self._fitted_tables.add(X) if defences else None
        return Basis(self.name, _num_samples(X), mechanism, obstacle, own_rows, table)

    def _check_not_forgotten(self) -> None:
        if self._forgotten:
            raise ForgottenError(
                f"Party {self.name!r} has forgotten its map f_k, so it can neither share, obfuscate nor predict with a "
                "PartyModel. Predict with what `distil` gave; to share, make a new Party."
            )

    def _check_fitted(self) -> None:
        self._check_not_forgotten()
        super()._check_fitted()

    @property
    def _state(self) -> str:
        if self._forgotten:
            return "forgotten"
        if not hasattr(self, "_obfuscator"):
            return "not fitted"
        return f"{self._basis.n_rows} rows"

    def __repr__(self) -> str:
        return f"Party({self.name!r}, {self._state})"

    def _repr_html_(self) -> str:
        learnt = "a secret half of public rows"
        if self.fit_on is None:
            learnt = "this party's own rows, which it betrays"
        defences = ", ".join(map(class_names, self.defences)) or "none: each row leaves as its map has it"
        return card(
            f"Party {self.name}",
            chain(
                held=["rows", "f"],
                rows=self._state,
                f=f"{class_names(self.obfuscator)}, secret",
                shared="leaves once",
                g="of the analyst",
                h="of the analyst",
            ),
            table(
                [
                    ("map learnt from", learnt),
                    ("defences", defences),
                    ("stays here", "rows and map: nobody else can predict with what comes back"),
                ]
            ),
        )
