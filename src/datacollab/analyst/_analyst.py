"""The analyst: integrate the parties' shares, and train on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from .._notebooks import card, chain, class_names, table
from .._threads import one_thread, one_thread_if_small
from .._validation import FloatArray, PartyName
from ..errors import AgreementError, UnknownPartyError, UnsendableWarning
from ..model import AnchorPredictions, PartyModel, add_level, anchor_predictions, unsendable_part
from ..share import Share
from ..survival import SurvivalModel
from ..targets import TargetKind, check_coding
from ._choice import ANCHOR_WEIGHTS, FittedCandidate, NamedModel, Search, Selection, default_integrators, train_again
from ._levels import Levels, levels_of
from ._linear import BaseIntegrator
from ._training import TrainingRows, common_kind, training_rows

_MOST_SHOWN = 10
"""Parties that a notebook lists."""


class Collaboration:
    """The integrator, the model and the rows that the analyst holds after the integration.

    Attributes
    ----------
    integrator_ : BaseIntegrator
        The fitted integration method, with one g_k per party.
    estimator_ : estimator
        The model h, fitted on the collaboration representations of all parties.
    representations_ : dict of party to ndarray of shape (n_samples, n_components)
        Collaboration representations.  They stay with the analyst: a colluding party could invert them.
    selection_ : Selection or None
        All candidates that were tried, with their losses on rows left out, where there was a choice.
    left_out_ : dict of party to ndarray of shape (n_samples,) or (n_samples, n_classes)
        Predictions of h for each row of a share, in its order, with that row left out; of parties whose rows are their
        own.
    levels_ : dict of party to ndarray of shape (n_classes,) or ()
        Each party's own intercept, beside those of h, which goes to that party alone; see `Analyst`.
    without_ : dict of party to estimator
        h trained without a party, for those whose shared rows are not their own rows one by one.
    anchors_ : dict of party to ndarray of shape (n_anchors, n_intermediate)
        Anchor representations as the parties shared them; `anchor_predictions` needs them.
    """

    def __init__(
        self,
        integrator: BaseIntegrator,
        estimator: Any,
        representations: Mapping[PartyName, FloatArray],
        *,
        selection: Selection | None = None,
        left_out: Mapping[PartyName, FloatArray] | None = None,
        levels: Mapping[PartyName, FloatArray] | None = None,
        without: Mapping[PartyName, Any] | None = None,
        anchors: Mapping[PartyName, FloatArray] | None = None,
    ) -> None:
        self.integrator_ = integrator
        self.estimator_ = estimator
        self.representations_ = dict(representations)
        self.selection_ = selection
        self.left_out_ = dict(left_out or {})
        self.levels_ = dict(levels or {})
        self.without_ = dict(without or {})
        self.anchors_ = dict(anchors or {})

    @property
    def parties(self) -> list[PartyName]:
        """Names of the parties, in the order of their shares."""
        return list(self.integrator_.integration_functions_)

    def party_model(self, party: PartyName) -> PartyModel:
        """Return the model for one party: its own g_k, h at its own level, and predictions for its rows left out.

        Raise UnknownPartyError if the party took no part.
        """
        if party not in self.integrator_.integration_functions_:
            raise UnknownPartyError(f"Party {party!r} took no part; the parties are {self.parties!r}.")
        estimator = self.estimator_
        if isinstance(estimator, SurvivalModel):
            # A model with strata gives a party its own.
            estimator = estimator.for_party(party)
        elif party in self.levels_:
            # Nobody else gets this level: it tells how frequent the classes are at the party.
            estimator = add_level(estimator, self.levels_[party])
        return PartyModel(
            party=party,
            integration_function=self.integrator_.integration_functions_[party],
            estimator=estimator,
            left_out=self.left_out_.get(party),
            without_party=self.without_.get(party),
        )

    def anchor_predictions(self, party: PartyName) -> AnchorPredictions:
        """Return h on the anchor's rows by the party's own g_k, which goes to the party in place of a model.

        Raise UnknownPartyError if the party took no part, or its share is not at hand.
        """
        model = self.party_model(party)
        if party not in self.anchors_:
            raise UnknownPartyError(
                f"The anchor representation of party {party!r} is not at hand; fit the analyst anew."
            )
        return anchor_predictions(model, self.anchors_[party])

    def _repr_html_(self) -> str:
        functions = self.integrator_.integration_functions_
        first = next(iter(functions.values()))
        rows = [
            (str(party), f"{len(X)} rows", f"{functions[party].n_intermediate} columns in, {X.shape[1]} out")
            for party, X in list(self.representations_.items())[:_MOST_SHOWN]
        ]
        lines: list[tuple[str, ...]] = [*rows]
        if len(functions) > len(rows):
            lines.append((f"and {len(functions) - len(rows)} more",))
        return card(
            f"Collaboration of {len(functions)} parties",
            chain(
                held=["g", "common", "h"],
                f="secret, of each party",
                shared="from each party",
                g=f"{class_names(self.integrator_)}, one for each",
                common=f"{sum(map(len, self.representations_.values()))} \u00d7 {first.n_components}",
                h=class_names(self.estimator_),
            ),
            table(lines),
        )

    def __repr__(self) -> str:
        return (
            f"Collaboration(parties={self.parties!r}, integrator={type(self.integrator_).__name__}, "
            f"estimator={type(self.estimator_).__name__})"
        )


FEWEST_OTHERS = 3
"""Fewest other parties for a model without one party."""


class Analyst:
    """Aligns the parties' shares and trains one model on all of them.

    Left to choose, the analyst tries integration methods, weights of the anchor's rows and models, and takes those that
    predict best the parties' rows that they were not trained on: a forest, or the average of ridge regressions that do
    nearly as well as each other.  Named, both are taken as they are.

    Parameters
    ----------
    integrator : BaseIntegrator, sequence of BaseIntegrator, or "auto", default="auto"
        Cloned before it is fitted.  Of several the best is taken; "auto" tries ODC where all shares are equally wide,
        LTI, and KTI without and with a graph between anchor rows of like targets.
    estimator : estimator or "auto", default="auto"
        Any scikit-learn classifier or regressor; cloned before it is fitted.  "auto" tries ridge regression, kernel
        ridge regressions on anchor rows, each with the best of five penalties, and a random forest; all with calibrated
        probabilities.  Of the ridge regressions an average is taken, in which each weighs the more, the smaller its
        loss.
    anchor_weight : float or "auto", default="auto"
        Weight of an anchor row beside a party's row in the training of h, where the anchor has targets; 0 leaves them
        out.  An anchor row is the mean of its images under the parties' functions.  "auto" takes the best of 0, 0.3
        and 1 where there is a choice to make at all, and 0 where integrator and estimator are named.  With "auto", the
        anchor's classes together weigh as often as the parties have them: SMOTE balances them.
    task : {"auto", "classification", "regression"}, default="auto"
        The kind of targets; "auto" treats floating-point targets as numbers and all others as classes.
    class_weight : "balanced", dict of class to float, or None, default=None
        Weights of classes, in training and in judging.  "balanced" makes all classes weigh the same, which moves the
        probabilities away from the frequencies.
    budget : float or None, default=None
        Seconds after which no further candidate is begun.
    left_out : bool or "auto", default="auto"
        Whether to keep predictions for each row left out, or h without a party where its rows are not its own; parties
        compare and combine with them.  "auto" does where there was a choice.
    strata : "party" or None, default="party"
        "party" lets every party have risks of its own over time, with common hazard ratios, where the estimator takes
        strata, as `CoxRegression` does.  Of classes and numbers, it gives every party whose rows are its own a level of
        its own: shrunken intercepts, where `left_out` is and rows left out speak for them.
    n_jobs, random_state : int
        For random forests.
    progress : callable, default=None
        Called with the number of candidates tried, of all, and the name of the next.

    Notes
    -----
    Losses are exact for rows left out: in closed form for ridge regressions, from trees that did not see the row for
    forests, by folds for other models.  Equal rows, and rows made of one anchor row, are left out together.  Where
    defences changed all shared rows, the anchor's rows judge, if they have targets.  They cannot tell how a method does
    on rows unlike them, so candidates are few and cautious then; none are averaged.  Where they look interpolated, as
    by SMOTE, near ones are left out together, and a kernel must be better by far than a linear model.
    Without such targets, means of groups with noise get a linear model alone, and its log odds are made smaller: means
    of a class vary less than rows do.

    Examples
    --------
    >>> import numpy as np
    >>> import datacollab as dc
    >>> X, y = dc.datasets.load("digits")
    >>> rows = {"clinic": slice(0, 50), "hospital": slice(50, 100)}
    >>> anchor, anchor_target = X[300:380], y[300:380]
    >>> f = dc.obfuscator("pca", n_components=8)
    >>> parties = {name: dc.Party(name, f).fit(X[own], y[own]) for name, own in rows.items()}
    >>> shares = [party.share(anchor, anchor_target) for party in parties.values()]
    >>> collaboration = dc.Analyst().fit(shares)
    >>> collaboration.selection_.chosen.loss < 0.5
    True
    >>> model = collaboration.party_model("clinic")
    >>> parties["clinic"].predict(X[600:605], model).shape
    (5,)
    """

    def __init__(  # noqa: PLR0913
        self,
        integrator: BaseIntegrator | Sequence[BaseIntegrator] | str = "auto",
        estimator: Any = "auto",
        *,
        anchor_weight: float | str = "auto",
        task: str = "auto",
        class_weight: str | Mapping[Any, float] | None = None,
        budget: float | None = None,
        left_out: bool | str = "auto",
        strata: str | None = "party",
        n_jobs: int | None = None,
        random_state: int = 0,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> None:
        self.integrator = integrator
        self.estimator = estimator
        self.anchor_weight = anchor_weight
        self.task = task
        self.class_weight = class_weight
        self.budget = budget
        self.left_out = left_out
        self.strata = strata
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(self, shares: Iterable[Share]) -> Collaboration:
        """Integrate the shares, one from each party, and fit the model on the combined collaboration representations.

        Raises
        ------
        TypeError
            If the integrator or a share is something else, or a model cannot weigh rows.
        ValueError
            If a parameter has no meaning.
        AgreementError
            If two shares carry one name, their anchors differ in length, their anchor targets differ, or some
            targets are numbers and others text.
        RepresentationError
            If an anchor representation cannot be aligned; the message names the party.

        Warns
        -----
        UnsendableWarning
            If the estimator has no form in files.

        Notes
        -----
        Shares do not show that all parties transformed the same anchor in the same row order, but for the number of
        rows and their targets, if sent.  Different orders give a model that is hardly better than guessing; parties
        should compare their anchors among themselves.
        """
        self._check_parameters()
        # A warning alone: such a model serves here, and so do its predictions on the anchor.
        if not isinstance(self.estimator, str) and (part := unsendable_part(self.estimator)):
            warnings.warn(
                f"A {part} cannot be sent to the parties, whose models are plain numbers; its predictions on the "
                "anchor can. datacollab.model.SENDABLE names the estimators that can be sent.",
                UnsendableWarning,
                stacklevel=2,
            )
        named = by_party(shares)
        training = training_rows(named, as_classes=self.task == "classification")
        if common_kind(named) is TargetKind.SURVIVAL:
            self._check_survival()
        elif self._is_classification(training.target):
            # "0" at one party and "no" at another would be two classes.
            check_coding({party: share.target for party, share in named.items()})
        # The paper's protocol: nothing is tried, and nothing left out.
        if not self._has_choice and not self._wants_left_out:
            with one_thread_if_small(max(len(training.target), len(next(iter(named.values())).anchor_representation))):
                return self._as_named(named, training)
        return self._choose(named, training)

    @one_thread
    def _choose(self, named: Mapping[PartyName, Share], training: TrainingRows) -> Collaboration:
        """Return the integrator and the model that predict best the rows left out."""
        if isinstance(self.anchor_weight, str) and self._is_classification(training.target):
            training = training.at_parties_frequencies()
        choice, selection = self._search(named, training).run()
        collaboration = Collaboration(
            choice.integrator,
            choice.estimator,
            {party: choice.rows[rows] for party, rows in training.parties.items()},
            anchors={party: share.anchor_representation for party, share in named.items()},
        )
        if self._has_choice:
            collaboration.selection_ = selection
        if self._wants_left_out:
            if self.strata is not None:
                levels = self._levels(training, choice)
                collaboration.levels_ = levels.sent
                # Parties get predictions at their own level, as their model makes them.
                choice = replace(choice, left_out=levels.left_out)
            collaboration.left_out_, collaboration.without_ = self._predict_left_out(training, choice)
        return collaboration

    @property
    def _has_choice(self) -> bool:
        return not isinstance(self.integrator, BaseIntegrator) or isinstance(self.estimator, str)

    @property
    def _wants_left_out(self) -> bool:
        return self._has_choice if isinstance(self.left_out, str) else self.left_out

    def _weights(self, cautious: bool = False) -> tuple[float, ...]:
        if not isinstance(self.anchor_weight, str):
            return (float(self.anchor_weight),)
        if not self._has_choice:
            return (0.0,)
        # Where the anchor's rows judge, a smaller weight would be chosen by rows that the model saw less of.
        return ANCHOR_WEIGHTS[-1:] if cautious else ANCHOR_WEIGHTS

    def _check_parameters(self) -> None:
        integrator = self.integrator
        tried = integrator if isinstance(integrator, Sequence) else [integrator]
        if integrator != "auto" and not (tried and all(isinstance(each, BaseIntegrator) for each in tried)):
            got = repr(integrator) if isinstance(integrator, str) else type(integrator).__name__
            raise TypeError(
                f"integrator must be an integration method such as KTI(), a list of them, or 'auto'; got {got}."
            )
        if isinstance(self.estimator, str) and self.estimator != "auto":
            raise ValueError(f"estimator must be a scikit-learn estimator or 'auto'; got {self.estimator!r}.")
        if self.task not in ("auto", "classification", "regression"):
            raise ValueError(f"task must be 'auto', 'classification' or 'regression'; got {self.task!r}.")
        if self.strata not in ("party", None):
            raise ValueError(f"strata must be 'party' or None; got {self.strata!r}.")
        for name, word in (("anchor_weight", self.anchor_weight), ("left_out", self.left_out)):
            if isinstance(word, str) and word != "auto":
                raise ValueError(f"{name}={word!r} has no meaning; the only word it takes is 'auto'.")
        if not isinstance(self.anchor_weight, str) and not 0 <= self.anchor_weight < np.inf:
            raise ValueError(f"anchor_weight must be 'auto' or a number from 0 on; got {self.anchor_weight!r}.")

    def _check_survival(self) -> None:
        """Refuse a choice: candidates are compared by losses that times to events do not have."""
        if self._has_choice or self._wants_left_out:
            raise AgreementError(
                "Targets are times to events, for which there is no choice among methods and models yet, nor what is "
                "said of rows left out. Name both: Analyst(LTI(n_components, fit_intercept=True), CoxRegression()), "
                "with as many components as the representations have columns."
            )

    def _is_classification(self, target: NDArray[Any]) -> bool:
        if not isinstance(self.estimator, str):
            return bool(is_classifier(self.estimator))
        if self.task == "auto":
            return target.dtype.kind != "f"
        return self.task == "classification"

    def _class_weight(self, target: NDArray[Any]) -> str | Mapping[Any, float] | None:
        """Return the weights of classes; none of numbers."""
        return self.class_weight if self._is_classification(target) else None

    def _search(self, shares: Mapping[PartyName, Share], training: TrainingRows) -> Search:
        cautious = training.judged_on != "rows"
        integrators: Sequence[BaseIntegrator]
        if isinstance(self.integrator, BaseIntegrator):
            integrators = [self.integrator]
        elif isinstance(self.integrator, str):
            integrators = default_integrators(shares, cautious=cautious)
        else:
            integrators = list(self.integrator)
        model = None
        if not isinstance(self.estimator, str):
            model = NamedModel(type(self.estimator).__name__, self.estimator)
        return Search(
            shares=shares,
            training=training,
            integrators=integrators,
            model=model,
            anchor_weights=self._weights(cautious),
            is_classification=self._is_classification(training.target),
            class_weight=self._class_weight(training.target),
            budget=self.budget,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            progress=self.progress,
        )

    def _as_named(self, shares: Mapping[PartyName, Share], training: TrainingRows) -> Collaboration:
        """Fit the integrator and the model that were named, with nothing left out: the paper's protocol."""
        integrator: Any = self.integrator
        anchors = {party: share.anchor_representation for party, share in shares.items()}
        # One g_k per party (eq. collaboration-representations), then h on all rows (eq. single-integrated-dataset)
        integrator = clone(integrator).fit(anchors, training.anchor_target)
        (anchor_weight,) = self._weights()
        weights = training.weights(anchor_weight, self._class_weight(training.target))
        strata = None if self.strata is None else training.strata
        estimator, representations = training.train(self.estimator, integrator, shares, weights, strata=strata)
        return Collaboration(integrator, estimator, representations, anchors=anchors)

    def _levels(self, training: TrainingRows, choice: FittedCandidate) -> Levels:
        """Return the levels of the parties whose rows are their own."""
        target = training.target
        classes = getattr(choice.estimator, "classes_", None)
        if classes is None:
            weights = training.counts(None)
        else:
            target = (target[:, None] == classes).astype(np.float64)
            # A class that h does not know says nothing of its log odds.
            weights = training.counts(self.class_weight) * target.any(axis=1)
        parties = {party: place for party, place in training.parties.items() if training.are_own[party]}
        return levels_of(choice.left_out, target, weights, training.groups, parties)

    def _predict_left_out(
        self, training: TrainingRows, choice: FittedCandidate
    ) -> tuple[dict[PartyName, FloatArray], dict[PartyName, Any]]:
        """Return predictions for the rows of each party left out or, if it shared other rows, the model without them.

        A model without a party is one of the others alone, so it takes three others.
        """
        left_out = {
            party: round_predictions(choice.left_out[rows], training.target[rows])
            for party, rows in training.parties.items()
            if training.are_own[party]
        }
        without = {}
        for party, place in training.parties.items():
            # Rows that defences changed cannot be left out one by one, so the party is as a whole.
            if party in left_out or len(training.parties) <= FEWEST_OTHERS:
                continue
            kept = np.ones(len(training.target))
            kept[place] = 0.0
            again = train_again(choice, training, kept)
            if again is not None:
                without[party] = again
        return left_out, without

    def __repr__(self) -> str:
        return f"Analyst(integrator={self.integrator!r}, estimator={self.estimator!r})"


def by_party(shares: Iterable[Share]) -> dict[PartyName, Share]:
    """Return shares by the names of their parties."""
    if isinstance(shares, Share | Mapping):
        raise TypeError(f"Expected a list of shares, one from each party; got one {type(shares).__name__}.")
    named: dict[PartyName, Share] = {}
    for share in shares:
        if not isinstance(share, Share):
            raise TypeError(f"Expected shares (see Party.share), got {type(share).__name__}.")
        # Taking the second silently would let it replace the first party's rows.
        if share.party in named:
            raise AgreementError(f"Two shares carry the name {share.party!r}; keep the newer one, or rename a party.")
        named[share.party] = share
    if not named:
        raise AgreementError("Expected at least two shares, got none.")
    return named


def round_predictions(left_out: FloatArray, target: NDArray[Any]) -> FloatArray:
    """Return predictions for rows left out, no finer than a party needs them.

    Exact numbers would give away leverages, and with them and the model sums over the other parties' rows.
    """
    if left_out.ndim == 2:
        # Rounded down; those that lost most get the hundredths missing to one, so that a row still sums to one.
        parts = np.floor(100 * left_out)
        missing = np.round(100 - parts.sum(axis=1)).astype(int)
        places = np.argsort(np.argsort(parts - 100 * left_out, axis=1, kind="stable"), axis=1)
        return np.asarray((parts + (places < missing[:, None])) / 100)
    # Half the usual error tells a party as much as it can use; a model without errors gets a hundredth of the spread.
    step = float(np.sqrt(np.mean((left_out - target) ** 2))) / 2
    if step == 0:
        step = 0.01 * (float(np.std(target)) or 1.0)
    return np.asarray(np.round(left_out / step) * step)
