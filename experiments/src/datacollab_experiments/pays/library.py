"""Where the comparison calls the library: parties, what they have alone, the analyst, and the two together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab._encoder import TableEncoder
from datacollab.analyst import Collaboration
from datacollab.analyst._choice import (
    Candidate,
    FittedCandidate,
    NamedModel,
    Search,
    forest,
    is_ridge,
    kernel_models,
    with_many_landmarks,
)
from datacollab.analyst._training import mean_anchor, training_rows
from datacollab.linalg import gaussian_sigma
from datacollab.model import fit_left_out
from datacollab.party import PersonalModel
from datacollab.party._own_models import Blender, ClassBlender, NumberBlender, OwnData, own_candidates
from datacollab.sums import (
    CommonMap,
    MaskKey,
    Recommended,
    RidgeSums,
    SumsModel,
    SumsPlan,
    columns_alike,
    recommended,
)

from .columns import Array
from .draws import Draw, Rows
from .scoring import losses, spread

Predict = Callable[[Array], Array]
"""Probabilities (n_rows, n_classes), in the order of the table's classes, or numbers (n_rows,)."""

EPSILON, DELTA = 4.0, 1e-5
"""Of noisy synthetic rows."""

PERSONAL = 21
"""The stream of random numbers of the pool."""


def noise() -> float:
    """Standard deviation of the Gaussian mechanism at sensitivity 1."""
    return float(gaussian_sigma(EPSILON, DELTA))


def secrets(drawn: Draw, name: str) -> np.random.RandomState:
    """A party's generator: repeatable here, as it never should be outside of a comparison."""
    digest = hashlib.sha256(f"{drawn.seed} {name}".encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, dtype=np.uint32))


def make_party(drawn: Draw, name: str) -> dc.Party:
    """A party that shares rows, fitted on its own."""
    own = drawn.parties[name]
    f = dc.obfuscator("pca", drawn.n_components, standardize=drawn.standardize)
    fit_on = drawn.anchor if drawn.setting.f == "public" else None
    return dc.Party(name, f, fit_on=fit_on, random_state=secrets(drawn, name)).fit(own.X, own.y)


def by_sums(drawn: Draw) -> Predict:
    """One model from sums under masks, as the library recommends; the first party adds public rows with targets."""
    model, space = _summed(drawn)
    return _by_common_model(model, space.common, drawn)


def by_sums_and_own(drawn: Draw, parties: Sequence[str]) -> dict[str, Predict]:
    """The same model combined with each party's own, as the library combines them at home."""
    model, space = _summed(drawn)
    given = {} if drawn.labelled is None else {"public": drawn.labelled.X, "public_target": drawn.labelled.y}
    owned = [drawn.parties[name] for name in parties]
    homes = [dc.CombinedModel(space, model).fit(own.X, own.y, **given) for own in owned]
    return {
        name: home.predict if drawn.task == "regression" else home.predict_proba
        for name, home in zip(parties, homes, strict=True)
    }


@dataclass(frozen=True)
class _Space:
    """The common map of rows that are numbers already."""

    common: CommonMap
    alike: bool

    def encode(self, X: Array) -> Array:
        return X

    def map_encoded(self, Z: Array) -> Array:
        return self.common.transform(Z)


def _summed(drawn: Draw) -> tuple[SumsModel, _Space]:
    draw = secrets(drawn, "sums").bytes
    common, mapped = _mapped(drawn, draw(32))
    keys = {name: MaskKey(draw(32)) for name in drawn.parties}
    plan = SumsPlan(
        {name: key.public for name, key in keys.items()},
        n_components=common.n_components,
        **_target(drawn),
        noise=recommended_for(drawn).noise,
        least_penalty=recommended_for(drawn).least_penalty,
    )
    messages = []
    for name, v in mapped.items():
        n = len(drawn.parties[name])
        public = v.X[n:], v.y[n:]
        messages.append(plan.message(name, v.X[:n], v.y[:n], keys[name], noise_key=draw(32), public=public))
    return plan.solve(messages), _Space(common, alike_columns(drawn))


def by_exact_sums(drawn: Draw) -> Predict:
    """Ridge regression in the same map from the same sums, without noise: closed-form federated learning."""
    common, mapped = _mapped(drawn, secrets(drawn, "sums").bytes(32))
    target = _target(drawn)
    statistic = RidgeSums(common.n_components, **target, noise=0.0)
    total = np.sum([statistic.part(v.X, v.y) for v in mapped.values()], axis=0)
    model = SumsModel(statistic.solve(total), target.get("classes"), target.get("limits"), bytes(32))
    return _by_common_model(model, common, drawn)


def by_class_sums(drawn: Draw, *, noise: float | None = None) -> Predict:
    """The nearest class mean in the same map, from each class's sum of rows and their number, with noise once.

    Every number of the total gets noise of the recommended standard deviation, or of `noise`.  Replacing one row moves
    these numbers by 2 at most, and those of ridge regression by 2.1.  Classes are as likely as under equal round normal
    distributions around their means, whose variance is that of public rows around their nearest means.
    """
    common, mapped = _mapped(drawn, secrets(drawn, "sums").bytes(32))
    rows = pooled(mapped)
    of_class = rows.y[:, None] == np.arange(drawn.n_classes)
    total = of_class.T.astype(np.float64) @ np.column_stack([rows.X, np.ones(len(rows))])
    s = recommended_for(drawn).noise if noise is None else noise
    total += s * secrets(drawn, "class sums").standard_normal(total.shape)
    means = total[:, :-1] / np.maximum(total[:, -1:], 1.0)

    def squares(new: Array) -> Array:
        v = common.transform(new)
        return np.asarray(((v[:, None] - means) ** 2).mean(axis=2))

    variance = float(squares(_public(drawn)).min(axis=1).mean())
    return lambda new: softmax(-common.n_components * squares(new) / (2 * variance), axis=1)


def pooled(parties: Mapping[str, Rows]) -> Rows:
    """All parties' rows in one place."""
    return Rows(np.vstack([rows.X for rows in parties.values()]), np.concatenate([rows.y for rows in parties.values()]))


def recommended_for(drawn: Draw) -> Recommended:
    return recommended(alike=alike_columns(drawn))


def alike_columns(drawn: Draw) -> bool:
    return columns_alike(drawn.bounds.T, drawn.anchor.shape[1])


def _public(drawn: Draw) -> Array:
    return drawn.public.X if drawn.setting.n_public else drawn.anchor


def _mapped(drawn: Draw, secret: bytes) -> tuple[CommonMap, dict[str, Rows]]:
    """The common map, and each party's rows in it; the first adds public rows with targets."""
    # Numbers are in quarters of their declared ranges already, beside zeros and ones.
    most, alike = recommended_for(drawn).n_components, alike_columns(drawn)
    common = CommonMap.from_anchor(_public(drawn), secret, n_components=most, as_they_are=alike)
    mapped: dict[str, Rows] = {}
    for name, own in drawn.parties.items():
        rows = own if mapped or drawn.labelled is None else pooled({"own": own, "public": drawn.labelled})
        mapped[name] = Rows(common.transform(rows.X), rows.y)
    return common, mapped


def _target(drawn: Draw) -> dict[str, Any]:
    """Classes or limits, as plans take them."""
    if drawn.task == "regression":
        return {"limits": drawn.target_range}
    return {"classes": tuple(range(drawn.n_classes))}


def _by_common_model(model: SumsModel, common: CommonMap, drawn: Draw) -> Predict:
    if drawn.task == "regression":
        return lambda rows: np.asarray(model.predict(common.transform(rows)), dtype=np.float64)
    return lambda rows: model.predict_proba(common.transform(rows))


N_TREES = 100
"""Of forests of `alone` where it is not thorough."""


def alone(own: Rows, drawn: Draw, *, public: bool, thorough: bool = False, stream: int = 20) -> Predict:
    """What rows teach by themselves, or with the public ones: the party's own models of the library, pooled.

    A forest and kernel ridge regressions; if thorough a larger forest, more kernels, logistic regression and, where
    public rows have no targets, label spreading.  All are chosen and weighed on rows left out.  `stream` is of random
    numbers: with that of `personalised` the same comes out as its own side.
    """
    random = np.random.RandomState([drawn.seed, stream])
    numbers = drawn.task == "regression"
    labelled = drawn.labelled if public else None
    beside = drawn.public.X if public and drawn.setting.n_public else None
    encoder = TableEncoder(standardise=True).fit(own.X, beside=[] if beside is None else [beside])
    X = encoder.transform(own.X)
    target = own.y if labelled is None else np.concatenate([own.y, labelled.y])
    classes, codes = (np.arange(0), target) if numbers else np.unique(target, return_inverse=True)
    mean, deviation = (float(target.mean()), float(target.std()) or 1.0) if numbers else (0.0, 1.0)
    aims = (codes - mean) / deviation if numbers else codes
    candidates = own_candidates(
        OwnData(
            rows=X if beside is None else np.concatenate([X, encoder.transform(beside)]),
            target=aims,
            n_own=len(X),
            n_classes=None if numbers else len(classes),
            common_units=encoder.common_units,
        ),
        random,
        n_trees=3 * N_TREES if thorough else N_TREES,
        thorough=thorough,
    )
    nothing = np.full((len(X), 1 if numbers else drawn.n_classes), np.nan)
    known, beyond = (aims if numbers else classes[aims])[: len(X)], (aims if numbers else classes[aims])[len(X) :]
    blender: Blender = (
        NumberBlender(candidates, nothing, known, beyond)
        if numbers
        else ClassBlender(candidates, nothing, known, beyond, classes)
    )
    blend = blender.local()
    scorers = [candidates[place].fit() for place in blend.own]

    def predict(rows: Array) -> Array:
        encoded = encoder.transform(rows)
        told = np.zeros((len(rows), nothing.shape[1]))
        said = blend.speak([scorer(encoded) for scorer in scorers], told).local
        return mean + deviation * said if numbers else softmax(said, axis=1)

    return predict


def central(rows: Rows, drawn: Draw) -> Predict:
    """What rows of several parties in one place teach, with the public ones where these have targets.

    The analyst's candidates on raw, standardised rows: ridge and kernel ridge regressions and a forest, the best by
    rows left out.
    """
    X, y = rows.X, rows.y
    if drawn.labelled is not None:
        X, y = np.vstack([X, drawn.labelled.X]), np.concatenate([y, drawn.labelled.y])
    scaler = StandardScaler().fit(X)
    Z, ones = scaler.transform(X), np.ones(len(y))
    groups = np.unique(Z, axis=0, return_inverse=True)[1].ravel()
    classify = drawn.task == "classification"
    models = kernel_models(Z, is_classification=classify)
    models.append(forest(is_classification=classify, n_jobs=None, random_state=drawn.seed))
    tried = []
    for model in models:
        fitted, left_out = fit_left_out(model.estimator, Z, y, ones, groups=groups, judges=ones)
        assert left_out is not None  # every row is judged
        said = left_out if not classify else spread(left_out, fitted.classes_, drawn.n_classes)
        tried.append((float(losses(y, said).mean()), fitted))
    best = min(tried, key=lambda pair: pair[0])[1]
    if not classify:
        return lambda new: np.asarray(best.predict(scaler.transform(new)), dtype=np.float64)
    return lambda new: spread(best.predict_proba(scaler.transform(new)), best.classes_, drawn.n_classes)


def todays_way(shares: list[dc.Share], drawn: Draw) -> Collaboration:
    """Kernels, a graph of targets where there are any, centring, and a random forest."""
    graph = dc.TargetSimilarityGraph() if drawn.anchor_target is not None else None
    integrator = dc.KTI(drawn.n_components, graph=graph, center=True)
    forest = RandomForestRegressor if drawn.task == "regression" else RandomForestClassifier
    return dc.Analyst(integrator, forest(random_state=drawn.seed)).fit(shares)


def chosen_way(shares: list[dc.Share], drawn: Draw) -> Collaboration:
    """Whatever the analyst finds best by rows left out."""
    return _analyst(drawn).fit(shares)


def _analyst(drawn: Draw) -> dc.Analyst:
    return dc.Analyst("auto", "auto", task=drawn.task, random_state=drawn.seed)


def every_choice(shares: list[dc.Share], drawn: Draw) -> list[FittedCandidate]:
    """All candidates that the analyst may come to try, fitted: each by itself, and no average.

    The analyst gives some of its candidates more landmarks, and the forest one weight of the anchor's rows, as it goes
    along; here all have all of them, so that the same ones are tried in every draw.
    """
    named = {share.party: share for share in shares}
    analyst = _analyst(drawn)
    training = training_rows(named, as_classes=drawn.task == "classification")
    tried: dict[str, FittedCandidate] = {}

    class Keeping(Search):
        """The analyst's search, which keeps what it tried."""

        def _try(self, *arguments: Any, **named: Any) -> FittedCandidate:
            choice = super()._try(*arguments, **named)
            return tried.setdefault(candidate_name(choice.candidate), choice)

    search = Keeping(**vars(analyst._search(named, training)))
    search.run()
    weights = search.anchor_weights if training.has_anchor else (0.0,)
    for choice in list(tried.values()):
        own = NamedModel(name=choice.candidate.model, estimator=choice.estimator)
        wide = with_many_landmarks(own, mean_anchor(choice.integrator, named))
        more = [] if wide is None else [(wide, choice.candidate.anchor_weight)]
        more += [(own, weight) for weight in weights if not is_ridge(own.estimator)]
        for model, weight in more:
            candidate = replace(choice.candidate, model=model.name, anchor_weight=weight)
            if candidate_name(candidate) not in tried:
                search._try(choice.integrator, model, weight, choice.rows)
    return list(tried.values())


def candidate_name(candidate: Candidate) -> str:
    """A candidate in words, without its penalty, which it chooses by itself."""
    return f"{candidate.integrator}, {candidate.model}, anchor rows × {candidate.anchor_weight:.2g}"


def by_model(party: dc.Party, model: Any, drawn: Draw) -> Predict:
    """A party's predictions with what it got back."""
    if drawn.task == "regression":
        return lambda rows: np.asarray(party.predict(rows, model), dtype=np.float64)
    return lambda rows: spread(party.predict_proba(rows, model), model.estimator.classes_, drawn.n_classes)


def personalised(party: dc.Party, model: Any, own: Rows, drawn: Draw) -> tuple[Predict, Predict, Mapping[str, float]]:
    """The party's own models and what it got back as one; its own models by themselves; and what it is told.

    The last is the gain of the first over the second that the party's own rows say, with its 95 % interval: of the area
    for two classes, of the log loss for more, or the part of the RMSE that goes away.  A party with fewer than three
    rows of one of two classes is told a log loss, and is left out.
    """
    public = drawn.public.X if drawn.setting.n_public else None
    labelled = None if drawn.labelled is None else drawn.labelled.y
    random = np.random.RandomState([drawn.seed, PERSONAL])
    mine = party.personalise(model, own.X, own.y, public=public, public_target=labelled, random_state=random)
    gain, metric = mine.benefit_.combined_gain, mine.benefit_.metric
    is_told = gain is not None and not (drawn.n_classes == 2 and metric == "log loss")
    told = {name: float(getattr(gain, name)) for name in ("value", "low", "high") if is_told}
    return _side(mine, "combined", drawn), _side(mine, "local", drawn), told


def _side(mine: PersonalModel, using: str, drawn: Draw) -> Predict:
    if drawn.task == "regression":
        return lambda rows: mine.predict(rows, using=using)
    return lambda rows: spread(mine.predict_proba(rows, using=using), mine.classes_, drawn.n_classes)
