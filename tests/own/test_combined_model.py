"""The common model and a party's own one together: the mean, what each of them rules out, and what it is fitted on."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import datacollab as dc
from datacollab.errors import AgreementError
from datacollab.party import MOST_OWN_ROWS, OwnModel, fit_own_model
from datacollab.sums import RidgeSums

CLASSES = ("a", "b", "c")
NAMES = ("north", "south", "west")


def table_of(n_rows, seed):
    """Rows with gaps and a category, and three classes of which the last is rare."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame({"age": random.normal(50, 10, n_rows), "ward": random.choice(["day", "night"], n_rows)})
    score = table["age"] + 10 * (table["ward"] == "night") + random.normal(0, 5, n_rows)
    table.loc[::7, "age"] = np.nan
    return table, score.to_numpy()


def classes_of(score):
    return np.asarray(CLASSES)[np.digitize(score, [55.0, 70.0])]


@pytest.fixture(scope="module")
def anchor():
    return table_of(120, 9)


@pytest.fixture(scope="module")
def space(anchor):
    return dc.CommonSpace(anchor[0], bytes(32))


def solved(space, target, **kind):
    keys = {name: dc.MaskKey.generate() for name in NAMES}
    plan = dc.SumsPlan({n: key.public for n, key in keys.items()}, n_components=space.n_components, **kind)
    messages = []
    for seed, name in enumerate(NAMES):
        table, score = table_of(90, seed)
        messages.append(plan.message(name, space.transform(table), target(score), keys[name]))
    return plan.solve(messages)


@pytest.fixture(scope="module")
def model(space):
    return solved(space, classes_of, classes=CLASSES)


@pytest.fixture(scope="module")
def home(space, model, anchor):
    table, score = table_of(90, 0)
    labels = np.where(np.arange(120) < 60, classes_of(anchor[1]).astype(object), None)
    return dc.CombinedModel(space, model).fit(table, classes_of(score), public=anchor[0], public_target=labels)


NEW = table_of(200, 77)[0]


def test_the_mean_written_naively(space, model, home):
    own = home.own
    assert (own.n_own, len(own.rows)) == (90, 150)
    weight = home.weight
    common, said = model.predict_proba(space.transform(NEW)), own.estimator.predict_proba(space.encode(NEW))
    expected = np.zeros((200, 3))
    for row in range(200):
        for place in range(3):
            known = list(own.columns)
            heard = said[row, known.index(place)] * common[row, known].sum() if place in known else common[row, place]
            expected[row, place] = (1 - weight) * common[row, place] + weight * heard
    assert_allclose(home.predict_proba(NEW), expected, rtol=1e-12)
    assert_array_equal(home.predict(NEW), np.asarray(CLASSES)[expected.argmax(axis=1)])
    assert_allclose(home.predict_proba(NEW, using="collaboration"), common)
    assert_array_equal(home.predict(NEW, using="collaboration"), model.predict(space.transform(NEW)))


def test_numbers_written_naively(space):
    model = solved(space, lambda score: score, limits=(0.0, 120.0))
    table, score = table_of(90, 0)
    home = dc.CombinedModel(space, model).fit(table, score)
    common = model.predict(space.transform(NEW))
    own = 60 + 60 * home.own.estimator.predict(space.encode(NEW)).clip(-1, 1)
    assert_allclose(home.predict(NEW), (1 - home.weight) * common + home.weight * own)
    assert_allclose(home.predict(NEW, using="local"), own)
    with pytest.raises(AttributeError, match="no class probabilities"):
        home.predict_proba(NEW)


def usual_weight(home):
    return 0.5 * np.sqrt(len(home.own.rows) / home.model.fit.n_rows)


def naive_weight(home, common, said, constant, loss, counts):
    """The own model's weight, sum by sum: losses are of row and weight, and each row counts for so much."""
    rows, weights = range(len(counts)), [place / 20 for place in range(21)]

    def mean(values):
        return sum(count * value for count, value in zip(counts, values, strict=True)) / sum(counts)

    def losses(weight):
        return [loss(row, (1 - weight) * common[row] + weight * said[row]) for row in rows]

    def is_clear(gains, errors):
        variance = mean([(gain - mean(gains)) ** 2 for gain in gains])
        n_effective = sum(counts) ** 2 / sum(count**2 for count in counts)
        return mean(gains) > errors * (variance / n_effective) ** 0.5

    def gains(better, worse):
        return [b - a for a, b in zip(losses(better), losses(worse), strict=True)]

    if mean(losses(1.0)) >= mean([loss(row, constant) for row in rows]):
        return usual_weight(home) / 4
    best = min(weights, key=lambda weight: mean(losses(weight)))
    if not is_clear(gains(best, 0.0), 3.0):
        return usual_weight(home)
    return max([usual_weight(home), *(w for w in weights if w >= best and not is_clear(gains(best, w), 2.0))])


def drawn_home(kind, seed):
    """A party of 100 rows, three such in the total, whose target its own model finds easily, hardly, or not at all."""
    random = np.random.default_rng(seed)
    rows = pd.DataFrame(random.uniform(-1, 1, (400, 3)), columns=list("xyz"))
    bent = np.sign(np.sin(6 * rows["x"])) if kind == "own" else rows["x"]
    score = random.normal(size=400) + (0.0 if kind == "nothing" else 6.0) * bent
    space = dc.CommonSpace(rows[:100], bytes(32))
    return space, rows, score.to_numpy()


@pytest.fixture(scope="module", params=["own", "both", "nothing"])
def judged(request, all_trees):
    """Homes with classes and with numbers; the party has more of a class than others."""
    space, rows, score = drawn_home(request.param, 5)
    homes = []
    for aims, target in (
        ({"classes": ("no", "yes")}, np.where(score > 0, "yes", "no")),
        ({"limits": (-9.0, 9.0)}, score),
    ):
        keys = {name: dc.MaskKey.generate() for name in NAMES}
        plan = dc.SumsPlan({n: key.public for n, key in keys.items()}, n_components=space.n_components, **aims)
        parts = {name: slice(100 * place, 100 * place + 100) for place, name in enumerate(NAMES, 1)}
        messages = [plan.message(n, space.transform(rows[p]), target[p], keys[n]) for n, p in parts.items()]
        own = np.r_[100:200][(target[100:200] != "no") | (np.arange(100) % 3 > 0)]
        homes.append((dc.CombinedModel(space, plan.solve(messages)).fit(rows.iloc[own], target[own]), target[own]))
    return request.param, homes


@pytest.mark.slow
def test_the_weight_of_classes_written_naively(judged):
    kind, ((home, labels), _) = judged
    said = home.own.left_out[:, 1]
    common = home.model.predict_proba(home.space.map_encoded(home.own.rows))[:, 1]
    is_yes = home.own.targets.argmax(axis=1) == 1
    assert is_yes.sum() == (labels == "yes").sum()
    share = common.mean()
    counts = [share / is_yes.mean() if yes else (1 - share) / (1 - is_yes.mean()) for yes in is_yes]

    def loss(row, of_yes):
        return -np.log(np.clip(of_yes if is_yes[row] else 1 - of_yes, 0.01, 1))

    assert_allclose(home.weight, naive_weight(home, common, said, share, loss, counts))
    check_kind(kind, home)


def test_the_weight_of_numbers_written_naively(judged):
    kind, (_, (home, numbers)) = judged
    common = home.model.predict(home.space.map_encoded(home.own.rows))
    said = 9 * home.own.left_out[:, 0].clip(-1, 1)
    truth = 9 * home.own.targets[:, 0]
    assert_allclose(np.sort(truth), np.sort(numbers))

    def loss(row, number):
        return (number - truth[row]) ** 2

    assert_allclose(home.weight, naive_weight(home, common, said, truth.mean(), loss, [1.0] * len(truth)))
    check_kind(kind, home)


class Given:
    """Stands for a space and a common model: encoded rows are what the common model says of them."""

    alike = False

    def __init__(self, statistic):
        self.statistic = statistic
        self.classes = statistic.classes
        self.fit = SimpleNamespace(n_rows=600.0)

    def map_encoded(self, Z):
        return Z

    predict_proba = predict = map_encoded


@pytest.mark.slow
@pytest.mark.parametrize("is_number", [True, False])
def test_the_weight_written_naively_whatever_both_models_say(is_number):
    """Of parties with more of a class than others, and models that are good, middling and bad."""
    kinds = []
    for seed in range(90):
        random = np.random.default_rng(seed)
        n_rows, share = 80, random.choice([0.15, 0.5, 0.8])
        noise_of_common, noise_of_own = random.choice([0.2, 0.4, 0.6, 0.8, 1.2, 2.0], 2)
        noises = random.normal(size=(2, n_rows)) * [[noise_of_common], [noise_of_own]]
        if is_number:
            statistic = RidgeSums(1, limits=(-1.0, 1.0))
            truth = random.uniform(-1, 1, n_rows)
            common, said = np.clip(truth + noises, -1, 1)
            own = OwnModel(True, None, n_rows, common[:, None], truth[:, None], said[:, None])
            stand = Given(statistic)
            stand.predict = lambda Z: Z[:, 0]
            constant, counts = truth.mean(), [1.0] * n_rows

            def loss(row, number, truth=truth):
                return (number - truth[row]) ** 2

        else:
            statistic = RidgeSums(1, classes=("no", "yes"))
            is_yes = random.random(n_rows) < share
            common, said = 1 / (1 + np.exp(-2 * (np.where(is_yes, 1, -1) + 1.5 * noises)))
            both = [np.column_stack([1 - of_yes, of_yes]) for of_yes in (common, said)]
            targets = statistic.encode(np.where(is_yes, "yes", "no"))
            own = OwnModel(True, np.arange(2), n_rows, both[0], targets, both[1])
            stand = Given(statistic)
            constant, part = common.mean(), is_yes.mean()
            counts = np.where(is_yes, constant / part, (1 - constant) / (1 - part)).tolist()

            def loss(row, of_yes, is_yes=is_yes):
                return -np.log(np.clip(of_yes if is_yes[row] else 1 - of_yes, 0.01, 1))

        home = dc.CombinedModel(stand, stand, own)
        assert_allclose(home.weight, naive_weight(home, common, said, constant, loss, counts), err_msg=str(seed))
        kinds.append(np.sign(home.weight - usual_weight(home)))
    assert all(kinds.count(kind) >= 3 for kind in (-1, 0, 1))


def check_kind(kind, home):
    expected = {"own": home.weight > 0.8, "both": home.weight == usual_weight(home), "nothing": home.weight < 0.2}
    assert expected[kind]


def test_a_class_that_the_party_lacks_keeps_the_common_models_probability(space, model):
    table, score = table_of(90, 0)
    has = classes_of(score) != "c"
    home = dc.CombinedModel(space, model).fit(table[has], classes_of(score)[has])
    common, both = model.predict_proba(space.transform(NEW)), home.predict_proba(NEW)
    assert home.own.columns.tolist() == [0, 1]
    assert_allclose(both[:, 2], common[:, 2])
    assert (np.abs(both[:, 0] - common[:, 0]) > 0.01).any()
    alone = home.predict_proba(NEW, using="local")
    assert (alone[:, 2] > 0).all()
    assert_allclose([both.sum(axis=1), alone.sum(axis=1)], 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("all_trees")
def test_the_better_model_on_rows_left_out_is_taken():
    random = np.random.default_rng(0)
    Z, statistic = random.normal(size=(300, 4)), RidgeSums(4, classes=(0, 1))
    linear = fit_own_model(statistic, (Z, (Z @ [1, -1, 1, 0] + random.logistic(size=300) > 0).astype(int)))
    bent = fit_own_model(statistic, (Z, (Z[:, 0] * Z[:, 1] > 0).astype(int)))
    assert linear.words == "a linear model on 300 of your rows"
    assert bent.words == "a random forest on 300 of your rows"
    numbers = RidgeSums(4, limits=(-10.0, 10.0))
    assert "linear" in fit_own_model(numbers, (Z, Z @ [1.0, -1.0, 1.0, 0.0])).words
    assert "forest" in fit_own_model(numbers, (Z, Z[:, 0] * Z[:, 1])).words


@pytest.mark.slow
def test_the_same_rows_give_the_same_model_and_of_many_some_are_taken():
    random = np.random.default_rng(0)
    Z = random.normal(size=(MOST_OWN_ROWS + 500, 2))
    y, statistic = Z[:, 0] * Z[:, 1], RidgeSums(2, limits=(-9.0, 9.0))
    own, again = (fit_own_model(statistic, (Z, y), (Z[:30], y[:30])) for _ in range(2))
    assert (own.n_own, len(own.rows)) == (MOST_OWN_ROWS, MOST_OWN_ROWS + 30)
    assert_array_equal(own.outputs(Z), again.outputs(Z))


@pytest.mark.parametrize("rows", [slice(0, 9), slice(0, 60)])
def test_few_rows_and_one_class_make_no_own_model(space, model, rows):
    table, _ = table_of(90, 0)
    home = dc.CombinedModel(space, model).fit(table[rows], np.full(90, "a")[rows])
    assert home.own is None
    assert home.sides == ("collaboration",)
    assert_array_equal(home.predict_proba(NEW), model.predict_proba(space.transform(NEW)))
    with pytest.raises(ValueError, match="using must be one of 'collaboration'; got 'combined'"):
        home.predict(NEW, using="combined")


def test_columns_that_are_all_alike_have_no_own_model():
    X, y = dc.datasets.load("digits")
    space = dc.CommonSpace(X[:200], bytes(32))
    keys = {name: dc.MaskKey.generate() for name in NAMES}
    plan = dc.SumsPlan({n: k.public for n, k in keys.items()}, n_components=space.n_components, classes=range(10))
    parts = {name: slice(200 + 60 * place, 260 + 60 * place) for place, name in enumerate(NAMES)}
    model = plan.solve([plan.message(n, space.transform(X[own]), y[own], keys[n]) for n, own in parts.items()])
    home = dc.CombinedModel(space, model).fit(X[parts["north"]], y[parts["north"]])
    assert home.sides == ("collaboration",)


def test_small_classes_and_equal_rows_are_no_error(space, model):
    table, _ = table_of(40, 0)
    y = np.array(["a"] * 38 + ["b", "c"])
    home = dc.CombinedModel(space, model).fit(table, y)
    assert "forest" in home.own.words
    same = table.iloc[[0] * 40].reset_index(drop=True)
    assert_allclose(dc.CombinedModel(space, model).fit(same, y).predict_proba(NEW).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: y[:-1], "there are 90 rows and 89 targets"),
        (lambda y: np.where(y == "c", "secret", y), "none of the classes agreed on"),
    ],
)
def test_targets_that_do_not_fit_are_refused_without_quoting_them(space, model, change, words):
    table, score = table_of(90, 0)
    with pytest.raises(AgreementError, match=words) as caught:
        dc.CombinedModel(space, model).fit(table, change(classes_of(score)))
    assert "secret" not in str(caught.value)
