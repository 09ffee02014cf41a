"""Methods: each one class, and one line of `METHODS`.

All but rows learn the same model, logistic or ridge regression in the library's common map of the public rows, so that
only the messages differ.  All may use the public rows and their targets.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.analyst import Collaboration
from datacollab.sums import CommonMap, MaskKey, RidgeSums, SumsModel, SumsPlan, standard_normal

from ..pays import library
from ..pays.draws import Draw, Rows
from ..pays.library import Predict
from ..pays.tables import Array
from ..pays.trial import make_rows
from ..sums.membership import find_turn_back, turn_and_undo
from ..sums.playing import matrix_of
from .messages import Kind, Message, Model, Points, Total

# The party whose rows are asked about, and the one that attacks.
VICTIM = "party-0"
ACCOMPLICE = "party-1"

# Inverse penalty of logistic regression.
C = 10.0
# Output of a class that a model never saw.
ABSENT = -5.0
# Federated averaging: rounds, steps of gradient descent in each at a party, and their length.
ROUNDS = 20
STEPS = 10
RATE = 2.0
# Standard deviation of the noise that a party adds to each of its votes.
VOTE_NOISE = 0.5
# Rows of the kind that an attacker knows; the covariance of the kind is as wide.
_N_KIND = 400


@dataclass(frozen=True, kw_only=True)
class Played:
    """The result of one play of a method.

    Attributes
    ----------
    models : sequence of callable
        Probabilities from rows: one model for all, or those of the first two parties.
    receiver, party : sequence of Message
        Messages of the victim and of all to the one who collects, and those to the accomplice beside its own rows.
    together : sequence of Message
        Messages to both if they work together; those of each by default.
    sent : int
        Bytes that the victim sends, all rounds together.
    """

    models: Sequence[Predict]
    receiver: Sequence[Message] = ()
    party: Sequence[Message] = ()
    together: Sequence[Message] | None = None
    sent: int = 0
    rounds: int = 1

    def list_messages(self) -> Mapping[str, Sequence[Message]]:
        """Return the messages that each attacker sees."""
        together = self.together
        if together is None:
            together = [*self.receiver, *self.party]
        return {"receiver": self.receiver, "party": self.party, "together": together}


class Method(ABC):
    """One way to collaborate."""

    name: ClassVar[str]

    @abstractmethod
    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        """Play all roles once.

        Parameters
        ----------
        drawn : Draw
            Parties' rows, public rows with targets, anchor, and a seed for all that is random.
        attacked : bool
            Whether this is a world of an attack, where steps that change nothing that anybody sees may be left out.
        """


@dataclass(frozen=True, eq=False)
class Linear:
    """Outputs that are linear in the common map."""

    common: CommonMap
    coefficients: Array
    intercept: Array

    def outputs(self, rows: Array) -> Array:
        """Return outputs, shape (n_rows, n_classes)."""
        return np.asarray(self.common.transform(rows) @ self.coefficients + self.intercept)

    def predict(self, rows: Array) -> Array:
        """Return probabilities, shape (n_rows, n_classes)."""
        return np.asarray(softmax(self.outputs(rows), axis=1))

    @property
    def n_bytes(self) -> int:
        """Return the size of its numbers."""
        return int(self.coefficients.nbytes + self.intercept.nbytes)


def kind_of(drawn: Draw) -> Kind:
    """Return the common map of a draw, and rows of the kind in it; the same in all its worlds."""
    return _kind(drawn.public, drawn.test, library.recommend_for(drawn).n_components, drawn.n_classes)


@lru_cache(maxsize=2)
def _kind(public: Rows, others: Rows, n_components: int, n_classes: int) -> Kind:
    common = CommonMap.from_anchor(public.X, bytes(32), n_components=n_components)
    statistic = RidgeSums(common.n_components, classes=range(n_classes), noise=0.0)
    return Kind.of(Rows(others.X[:_N_KIND], others.y[:_N_KIND]), common, statistic)


def logistic(V: Array, y: NDArray[np.intp], drawn: Draw) -> Linear:
    """Fit logistic regression to rows in the common map."""
    model = LogisticRegression(C=C, max_iter=300).fit(V, y)
    W = np.zeros((V.shape[1], drawn.n_classes))
    b = np.full(drawn.n_classes, ABSENT)
    W[:, model.classes_] = model.coef_.T
    b[model.classes_] = model.intercept_
    if len(model.classes_) == 2:
        # Of two classes there is one output: half of it speaks for the second, half against the first.
        W[:, model.classes_] = np.column_stack([-model.coef_[0] / 2, model.coef_[0] / 2])
        b[model.classes_] = np.array([-0.5, 0.5]) * model.intercept_
    return Linear(kind_of(drawn).common, W, b)


def learnt(rows: Rows, drawn: Draw) -> Linear:
    """Fit logistic regression to rows and the public ones."""
    both = library.pooled({"own": rows, "public": drawn.public})
    return logistic(kind_of(drawn).common.transform(both.X), both.y, drawn)


@lru_cache(maxsize=64)
def locals_of(drawn: Draw) -> dict[str, Linear]:
    """Return each party's own model; those of one world serve several methods."""
    return {name: learnt(rows, drawn) for name, rows in drawn.parties.items()}


def mean_of(models: Sequence[Linear]) -> Linear:
    W, b = (np.mean([getattr(each, name) for each in models], axis=0) for name in ("coefficients", "intercept"))
    return Linear(models[0].common, W, b)


class Constant(Method):
    """The classes' frequencies in the public rows."""

    name = "constant"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        shares = np.bincount(drawn.public.y, minlength=drawn.n_classes) / len(drawn.public)
        return Played(models=[lambda rows: np.tile(shares, (len(rows), 1))], rounds=0)


class Local(Method):
    """Own and public rows; nothing is sent."""

    name = "local"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        return Played(models=[model.predict for model in list(locals_of(drawn).values())[:2]], rounds=0)


class Average(Method):
    """Each party sends its own model; parties get the mean: federated averaging in one round."""

    name = "average of locals"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        models = locals_of(drawn)
        mean = mean_of(list(models.values()))
        return Played(
            models=[mean.predict],
            receiver=[Model(models[VICTIM].outputs), Model(mean.outputs)],
            party=[Model(mean.outputs)],
            sent=mean.n_bytes,
        )


class Votes(Method):
    """Each party's model votes on the anchor, with noise; a student learns the majority, as in FedKT."""

    name = "votes on public rows"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        common = kind_of(drawn).common
        V = common.transform(drawn.anchor)
        votes = {}
        for name, model in locals_of(drawn).items():
            # Each party adds its own noise, so that the one who counts sees no clean vote.
            noise = library.secrets(drawn, f"votes {name}").normal(0, VOTE_NOISE, (len(V), drawn.n_classes))
            votes[name] = np.eye(drawn.n_classes)[model.outputs(drawn.anchor).argmax(axis=1)] + noise
        labels = np.sum(list(votes.values()), axis=0).argmax(axis=1)
        both = library.pooled({"voted on": Rows(V, labels), "public": self._map_rows(drawn)})
        student = logistic(both.X, both.y, drawn)
        # The victim's noisy votes on all anchor rows tell its model: ridge regression averages the noise.
        of_victim = Ridge(alpha=1.0).fit(V, votes[VICTIM])
        alone = Linear(common, of_victim.coef_.T, of_victim.intercept_)
        return Played(
            models=[student.predict],
            receiver=[Model(alone.outputs), Model(student.outputs)],
            party=[Model(student.outputs)],
            sent=votes[VICTIM].nbytes,
        )

    @staticmethod
    def _map_rows(drawn: Draw) -> Rows:
        return Rows(kind_of(drawn).common.transform(drawn.public.X), drawn.public.y)


class SyntheticRows(Method):
    """Each party sends rows of a Gaussian copula fitted to each of its classes."""

    name = "synthetic rows"
    noisy: ClassVar[bool] = False

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        made = {name: make_rows(own, drawn, self.noisy, name) for name, own in drawn.parties.items()}
        common = kind_of(drawn).common
        of_victim = made[VICTIM]
        model = learnt(library.pooled(made), drawn)
        seen = Points(Rows(common.transform(of_victim.X), of_victim.y), common.transform)
        return Played(
            models=[model.predict],
            receiver=[seen, Model(learnt(of_victim, drawn).outputs), Model(model.outputs)],
            party=[Model(model.outputs)],
            sent=of_victim.X.nbytes + of_victim.y.nbytes,
        )


class PrivateSyntheticRows(SyntheticRows):
    """Synthetic rows from histograms with Gaussian noise: epsilon 4, delta 1e-5, given each class's size."""

    name = "synthetic rows, DP"
    noisy = True


class ExactSums(Method):
    """Each party sends its sums of ridge regression as they are: AFL and Fed3R."""

    name = "sums, exact"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        kind = kind_of(drawn)
        parts = {name: _part(kind, rows) for name, rows in drawn.parties.items()}
        fit = kind.statistic.solve(sum(parts.values()) + _part(kind, drawn.public))
        classes = SumsModel(fit, tuple(range(drawn.n_classes)), None, context=bytes(32))
        model = Model(lambda rows: fit.predict(kind.common.transform(rows)))
        return Played(
            models=[lambda rows: classes.predict_proba(kind.common.transform(rows))],
            receiver=[Total(matrix_of(parts[VICTIM], kind.statistic.size), 0.0, kind), model],
            party=[model],
            sent=parts[VICTIM].nbytes,
        )


class MaskedSums(Method):
    """Sums under masks with noise, as the library recommends; the receiver does not know the common map."""

    name = "sums under masks"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        kind = kind_of(drawn)
        draw = library.secrets(drawn, "sums").bytes
        rule = library.recommend_for(drawn)
        keys = {name: MaskKey(draw(32)) for name in drawn.parties}
        plan = SumsPlan(
            {name: key.public for name, key in keys.items()},
            n_components=kind.common.n_components,
            classes=range(drawn.n_classes),
            noise=rule.noise,
            least_penalty=rule.least_penalty,
        )
        public = _part(kind, drawn.public)
        # Public rows count once: the victim adds them, as the first party.
        n = len(keys)
        parts = {name: _part(kind, rows) for name, rows in drawn.parties.items()}
        parts[VICTIM] = parts[VICTIM] + public
        noise_keys = {name: draw(32) for name in keys}
        # Each party adds its part of the noise, with some excess for parties that collude.
        spread = plan.statistic.noise_of_each * plan.agreed.excess / n**0.5
        noises = {name: standard_normal(key, len(public)) * spread for name, key in noise_keys.items()}
        sent = 0
        if attacked:  # masks cancel, and are uniform numbers to all but their pair
            total = sum(parts.values()) + sum(noises.values())
        else:
            messages = [plan.agreed.mask(name, parts[name], keys[name], noise_key=noise_keys[name]) for name in keys]
            total = plan.agreed.total(messages)
            sent = messages[0].words.nbytes
        model = plan.model(total)
        # The total carries the planned noise, and the excess in case parties collude.
        s = plan.noise * plan.agreed.excess
        returned = Model(lambda rows: model.fit.predict(kind.common.transform(rows)))
        turn = library.secrets(drawn, "turn")
        D = kind.common.n_components
        size = kind.statistic.size
        # Without the map the receiver knows the rows up to a rotation, and turns second moments back.
        seen = turn_and_undo(matrix_of(total, size), kind.u.T @ kind.u, D, turn)
        # A party takes its own part and noise, and the public rows, out of the total.
        others = total - parts[ACCOMPLICE] - noises[ACCOMPLICE] - public
        return Played(
            models=[lambda rows: model.predict_proba(kind.common.transform(rows))],
            receiver=[Total(seen - matrix_of(public, size), s, kind)],
            party=[returned],
            together=[Total(matrix_of(others, size), s * ((n - 1) / n) ** 0.5, kind), returned],
            sent=sent,
        )


class FederatedAveraging(Method):
    """The reference with many rounds: gradient descent at home from a model of the public rows, averaged each round."""

    name = f"FedAvg, {ROUNDS} rounds"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        kind = kind_of(drawn)
        names = list(drawn.parties)
        V = np.array([kind.common.transform(drawn.parties[name].X) for name in names])
        V = np.concatenate([V, np.ones((*V.shape[:2], 1))], axis=2)  # (n_parties, n_rows, D + 1)
        T = np.eye(drawn.n_classes)[np.array([drawn.parties[name].y for name in names])]
        V_t = np.swapaxes(V, 1, 2) / V.shape[1]
        # All start from a model of the public rows, so that rounds add only what parties know.
        start = logistic(kind.common.transform(drawn.public.X), drawn.public.y, drawn)
        common = np.vstack([start.coefficients, start.intercept])
        first = common
        moved = np.zeros_like(common)
        for number in range(ROUNDS):
            W = np.tile(common, (len(names), 1, 1))
            for _ in range(STEPS):
                W -= RATE * (V_t @ (softmax(V @ W, axis=2) - T))
            # The first model that the victim returns: later ones start from what all have learnt.
            if number == 0:
                first = W[names.index(VICTIM)]
            # The receiver sees every move; their sum stands for them.
            moved += W[names.index(VICTIM)] - common
            common = W.mean(axis=0)

        def model(W: Array) -> Linear:
            return Linear(kind.common, W[:-1], W[-1])

        return Played(
            models=[model(common).predict],
            receiver=[Model(model(W).outputs) for W in (first, moved, common)],
            party=[Model(model(common).outputs)],
            sent=ROUNDS * common.nbytes,
            rounds=ROUNDS,
        )


class SharedRows(Method):
    """Rows under secret maps, joined by KTI with a graph of targets (TSL); PCA is fitted on the public rows."""

    name = "rows (KTI+TSL, PCA)"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        parties = {name: library.make_party(drawn, name) for name in drawn.parties}
        shares = {name: party.share(drawn.anchor, drawn.anchor_target) for name, party in parties.items()}
        collaboration = self._analyst(drawn, attacked).fit(list(shares.values()))
        models = {name: self._predict(parties[name], collaboration, drawn) for name in (VICTIM, ACCOMPLICE)}
        share = shares[VICTIM]
        returned = Model.of(models[ACCOMPLICE])
        rows = Rows(share.representation, share.target)
        with_one = np.column_stack([np.ones(len(drawn.anchor)), drawn.anchor])
        # An attacker who has the anchor solves for the affine map by least squares.
        f = np.linalg.lstsq(with_one, share.anchor_representation, rcond=1e-10)[0]
        known = Points(rows, lambda new: np.asarray(np.column_stack([np.ones(len(new)), new]) @ f))
        sent = sum(array.nbytes for array in (share.representation, share.target, share.anchor_representation))
        return Played(
            models=list(models.values()),
            receiver=[self._without_anchor(rows, drawn)],
            party=[returned],
            together=[known, returned],
            sent=sent,
        )

    @staticmethod
    def _analyst(drawn: Draw, attacked: bool) -> dc.Analyst:
        integrator = dc.KTI(drawn.n_components, graph=dc.TargetSimilarityGraph(), center=True)
        if not attacked:
            return dc.Analyst(integrator, "auto", task=drawn.task, random_state=drawn.seed)
        # Choosing takes the analyst five seconds a world.
        return dc.Analyst(integrator, make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500)))

    @staticmethod
    def _predict(party: dc.Party, collaboration: Collaboration, drawn: Draw) -> Predict:
        return library.by_model(party, collaboration.party_model(party.name), drawn)

    @staticmethod
    def _without_anchor(rows: Rows, drawn: Draw) -> Points:
        """Return shared rows as somebody sees them who knows the kind, and neither the anchor nor f."""
        kind = drawn.test
        D = rows.X.shape[1]
        # The attacker's guess of f: PCA of other rows of the kind.
        guess = PCA(D).fit(kind.X)
        centred = rows.X - rows.X.mean(axis=0)

        def moments(Z: Array, y: NDArray[np.intp]) -> Array:
            both = np.hstack([Z, np.eye(drawn.n_classes)[y], np.ones((len(Z), 1))])
            return np.asarray(both.T @ both / len(Z))

        back = find_turn_back(moments(centred, rows.y), moments(guess.transform(kind.X), kind.y), D)
        return Points(Rows(centred @ back, rows.y), guess.transform)


class Central(Method):
    """All rows in one place: the ceiling, which is not allowed."""

    name = "central"

    def play(self, drawn: Draw, *, attacked: bool) -> Played:
        model = learnt(library.pooled(drawn.parties), drawn)
        own = drawn.parties[VICTIM]
        common = kind_of(drawn).common
        return Played(
            models=[model.predict],
            receiver=[Points(Rows(common.transform(own.X), own.y), common.transform), Model(model.outputs)],
            party=[Model(model.outputs)],
            sent=own.X.nbytes + own.y.nbytes,
        )


# Methods by name, in the order of the report; a method that is added here is run, attacked and reported.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Constant(),
        Local(),
        Average(),
        Votes(),
        SyntheticRows(),
        PrivateSyntheticRows(),
        ExactSums(),
        FederatedAveraging(),
        SharedRows(),
        MaskedSums(),
        Central(),
    )
}


def _part(kind: Kind, rows: Rows) -> Array:
    return kind.statistic.part(kind.common.transform(rows.X), rows.y)
