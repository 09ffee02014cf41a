"""Where the comparison calls the library: parties, their own models, the analyst, and both together."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab._encoder import TableEncoder
from datacollab.analyst import Collaboration
from datacollab.analyst._choice import forest, kernel_models
from datacollab.linalg import gaussian_sigma
from datacollab.model import fit_left_out
from datacollab.own._blend import Blender, ClassBlender, NumberBlender
from datacollab.own._own_models import OwnData, own_candidates
from datacollab.party import PersonalModel
from datacollab.sums import CommonMap, MaskKey, Recommended, RidgeSums, SumsModel, SumsPlan, columns_alike, recommended

from .draws import Draw, Rows, losses, spread
from .tables import Array

# Probabilities (n_rows, n_classes), in the order of the table's classes, or numbers (n_rows,).
Predict = Callable[[Array], Array]

# The guarantee of noisy synthetic rows.
EPSILON = 4.0
DELTA = 1e-5

# The stream of random numbers of the pool.
PERSONAL = 21


def noise() -> float:
    """Standard deviation of the Gaussian mechanism at sensitivity 1."""
    return float(gaussian_sigma(EPSILON, DELTA))


def secrets(drawn: Draw, name: str) -> np.random.RandomState:
    """A party's generator: repeatable here, as it never should be outside of a comparison."""
    # Seeds of their own, whatever else draws random numbers.
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
    model, space = _add_up(drawn)
    return _by_common_model(model, space.common, drawn)


def by_sums_and_own(drawn: Draw, parties: Sequence[str]) -> dict[str, Predict]:
    """Combine the common model with each party's own, as the library combines them at home."""
    model, space = _add_up(drawn)
    public: dict[str, Any] = {}
    if drawn.labelled is not None:
        public = {"public": drawn.labelled.X, "public_target": drawn.labelled.y}
    predict: dict[str, Predict] = {}
    for name in parties:
        own = drawn.parties[name]
        home = dc.CombinedModel(space, model).fit(own.X, own.y, **public)
        predict[name] = home.predict if drawn.task == "regression" else home.predict_proba
    return predict


@dataclass(frozen=True)
class _Space:
    """The common map of rows that are numbers already."""

    common: CommonMap
    alike: bool

    def encode(self, X: Array) -> Array:
        return X

    def map_encoded(self, Z: Array) -> Array:
        return self.common.transform(Z)


def _add_up(drawn: Draw) -> tuple[SumsModel, _Space]:
    draw = secrets(drawn, "sums").bytes
    common, mapped = _map_rows(drawn, draw(32))
    keys = {name: MaskKey(draw(32)) for name in drawn.parties}
    plan = SumsPlan(
        {name: key.public for name, key in keys.items()},
        n_components=common.n_components,
        **_target(drawn),
        noise=recommend_for(drawn).noise,
        least_penalty=recommend_for(drawn).least_penalty,
    )
    messages = []
    for name, v in mapped.items():
        n = len(drawn.parties[name])
        public = v.X[n:], v.y[n:]
        messages.append(plan.message(name, v.X[:n], v.y[:n], keys[name], noise_key=draw(32), public=public))
    return plan.solve(messages), _Space(common, alike_columns(drawn))


def by_exact_sums(drawn: Draw) -> Predict:
    """Ridge regression in the same map from the same sums, without noise: closed-form federated learning."""
    common, mapped = _map_rows(drawn, secrets(drawn, "sums").bytes(32))
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
    common, mapped = _map_rows(drawn, secrets(drawn, "sums").bytes(32))
    rows = pooled(mapped)
    # For each class the sum of mapped rows, and of ones for their number.
    of_class = rows.y[:, None] == np.arange(drawn.n_classes)
    total = of_class.T.astype(np.float64) @ np.column_stack([rows.X, np.ones(len(rows))])
    if noise is None:
        noise = recommend_for(drawn).noise
    total += noise * secrets(drawn, "class sums").standard_normal(total.shape)
    # Noise may leave a class fewer than one row.
    means = total[:, :-1] / np.maximum(total[:, -1:], 1.0)

    def squares(new: Array) -> Array:
        v = common.transform(new)
        return np.asarray(((v[:, None] - means) ** 2).mean(axis=2))

    # The spread of public rows around their nearest class mean stands for that of all.
    variance = float(squares(_public(drawn)).min(axis=1).mean())
    return lambda new: softmax(-common.n_components * squares(new) / (2 * variance), axis=1)


def pooled(parties: Mapping[str, Rows]) -> Rows:
    return Rows(np.vstack([rows.X for rows in parties.values()]), np.concatenate([rows.y for rows in parties.values()]))


def recommend_for(drawn: Draw) -> Recommended:
    return recommended(alike=alike_columns(drawn))


def alike_columns(drawn: Draw) -> bool:
    return columns_alike(drawn.bounds.T, drawn.anchor.shape[1])


def _public(drawn: Draw) -> Array:
    if drawn.setting.n_public:
        return drawn.public.X
    return drawn.anchor


def _map_rows(drawn: Draw, secret: bytes) -> tuple[CommonMap, dict[str, Rows]]:
    """The common map, and each party's rows in it; the first adds public rows with targets."""
    # Numbers are in quarters of their declared ranges already, beside zeros and ones.
    most = recommend_for(drawn).n_components
    alike = alike_columns(drawn)
    common = CommonMap.from_anchor(_public(drawn), secret, n_components=most, as_they_are=alike)
    mapped: dict[str, Rows] = {}
    for name, own in drawn.parties.items():
        rows = own
        # Public rows count once: the first party adds them.
        if not mapped and drawn.labelled is not None:
            rows = pooled({"own": own, "public": drawn.labelled})
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


# Trees of a forest of `alone` that is not thorough.
N_TREES = 100


def alone(own: Rows, drawn: Draw, *, public: bool, thorough: bool = False, stream: int = 20) -> Predict:
    """Train the party's own models of the library, pooled, on its rows, or with the public ones.

    A forest and kernel ridge regressions; if thorough a larger forest, more kernels, logistic regression and, where
    public rows have no targets, label spreading.  All are chosen and weighed on rows left out.  `stream` is of random
    numbers: with that of `personalise` the same comes out as its own side.
    """
    random = np.random.RandomState([drawn.seed, stream])
    beside: list[Array] = []
    target = own.y
    if public and drawn.setting.n_public:
        beside = [drawn.public.X]
    if public and drawn.labelled is not None:
        target = np.concatenate([own.y, drawn.labelled.y])
    # Scales of own and public rows: nothing of the other parties.
    encoder = TableEncoder(standardise=True).fit(own.X, beside=beside)
    n_own = len(own)
    numbers = drawn.task == "regression"
    mean = 0.0
    deviation = 1.0
    n_classes: int | None = None
    width = 1
    classes, codes = np.unique(target, return_inverse=True)
    aims: NDArray[Any] = codes
    known: NDArray[Any] = target
    if numbers:
        # Own models predict standardised numbers; a constant target keeps its unit.
        mean = float(target.mean())
        deviation = float(target.std()) or 1.0
        aims = known = (target - mean) / deviation
    else:
        n_classes = len(classes)
        width = drawn.n_classes
    data = OwnData(
        rows=np.concatenate([encoder.transform(rows) for rows in (own.X, *beside)]),
        target=aims,
        n_own=n_own,
        n_classes=n_classes,
        common_units=encoder.common_units,
    )
    candidates = own_candidates(data, random, n_trees=N_TREES * (3 if thorough else 1), thorough=thorough)
    # No common model has said anything of the rows.
    nothing = np.full((n_own, width), np.nan)
    blender: Blender
    if numbers:
        blender = NumberBlender(candidates, nothing, known[:n_own], known[n_own:])
    else:
        blender = ClassBlender(candidates, nothing, known[:n_own], known[n_own:], classes)
    blend = blender.choose_local()
    scorers = [candidates[place].fit() for place in blend.own]

    def predict(rows: Array) -> Array:
        encoded = encoder.transform(rows)
        scores = blend.speak([scorer(encoded) for scorer in scorers], np.zeros((len(rows), width))).local
        if numbers:
            return np.asarray(mean + deviation * scores)
        return np.asarray(softmax(scores, axis=1))

    return predict


def central(rows: Rows, drawn: Draw) -> Predict:
    """Train on rows of several parties in one place, and on the public ones where these have targets.

    The analyst's candidates on raw, standardised rows: ridge and kernel ridge regressions and a forest, the best by
    rows left out.
    """
    X = rows.X
    y = rows.y
    if drawn.labelled is not None:
        X = np.vstack([X, drawn.labelled.X])
        y = np.concatenate([y, drawn.labelled.y])
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    ones = np.ones(len(y))
    # Equal rows are left out together, so that none judges its own copy.
    groups = np.unique(Z, axis=0, return_inverse=True)[1].ravel()
    classify = drawn.task == "classification"
    models = kernel_models(Z, is_classification=classify)
    models.append(forest(is_classification=classify, n_jobs=None, random_state=drawn.seed))
    tried = []
    for model in models:
        fitted, left_out = fit_left_out(model.estimator, Z, y, ones, groups=groups, judges=ones)
        assert left_out is not None  # every row is judged
        if classify:
            left_out = spread(left_out, fitted.classes_, drawn.n_classes)
        tried.append((float(losses(y, left_out).mean()), fitted))
    best = min(tried, key=lambda pair: pair[0])[1]
    if not classify:
        return lambda new: np.asarray(best.predict(scaler.transform(new)), dtype=np.float64)
    return lambda new: spread(best.predict_proba(scaler.transform(new)), best.classes_, drawn.n_classes)


def todays_way(shares: list[dc.Share], drawn: Draw) -> Collaboration:
    """Kernels, a graph of targets where there are any, centring, and a random forest."""
    integrator = dc.KTI(drawn.n_components, center=True)
    # The graph joins anchor rows of like targets, so it needs them.
    if drawn.anchor_target is not None:
        integrator.graph = dc.TargetSimilarityGraph()
    forest = RandomForestRegressor if drawn.task == "regression" else RandomForestClassifier
    return dc.Analyst(integrator, forest(random_state=drawn.seed)).fit(shares)


def choose_way(shares: list[dc.Share], drawn: Draw) -> Collaboration:
    """Whatever the analyst finds best by rows left out."""
    return dc.Analyst("auto", "auto", task=drawn.task, random_state=drawn.seed).fit(shares)


def by_model(party: dc.Party, model: Any, drawn: Draw) -> Predict:
    """Return a party's predictions with the model it got back."""
    if drawn.task == "regression":
        return lambda rows: np.asarray(party.predict(rows, model), dtype=np.float64)
    return lambda rows: spread(party.predict_proba(rows, model), model.estimator.classes_, drawn.n_classes)


def personalise(party: dc.Party, model: Any, own: Rows, drawn: Draw) -> tuple[Predict, Predict, Mapping[str, float]]:
    """Return the party's pool of models, its own models by themselves, and the gain that it is told.

    The last is the gain of the first over the second that the party's own rows say, with its 95 % interval: of the area
    for two classes, of the log loss for more, or the part of the RMSE that goes away.  A party with fewer than three
    rows of one of two classes is told a log loss, and is left out.
    """
    public: dict[str, Any] = {}
    if drawn.setting.n_public:
        public["public"] = drawn.public.X
    if drawn.labelled is not None:
        public["public_target"] = drawn.labelled.y
    random = np.random.RandomState([drawn.seed, PERSONAL])
    mine = party.personalise(model, own.X, own.y, **public, random_state=random)
    gain = mine.benefit_.combined_gain
    metric = mine.benefit_.metric
    # Gains in other units are not averaged with these.
    is_told = gain is not None and not (drawn.n_classes == 2 and metric == "log loss")
    told = {name: float(getattr(gain, name)) for name in ("value", "low", "high") if is_told}
    return _side(mine, "combined", drawn), _side(mine, "local", drawn), told


def _side(mine: PersonalModel, using: str, drawn: Draw) -> Predict:
    if drawn.task == "regression":
        return lambda rows: mine.predict(rows, using=using)
    return lambda rows: spread(mine.predict_proba(rows, using=using), mine.classes_, drawn.n_classes)
