"""Whether it pays, before anything leaves: the law against known ones, and worlds where the answer is known."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import datacollab as dc
from datacollab.errors import AgreementError
from datacollab.party import Foresight, GaussianMechanism, GaussianNoise, Microaggregation, Party, obfuscator
from datacollab.party._foresee import _drawn
from datacollab.party._foresight import power_law, resampled_means


def test_the_law_is_found_again():
    sizes = np.array([10, 20, 40.0])
    law = power_law(sizes, 3 * sizes**-0.6)
    assert_allclose([law.exponent, law(1.0), law(400)], [0.6, 3, 3 * 400**-0.6])
    many = power_law(sizes, np.array([3 * sizes**-0.6, 2 * sizes**-0.2]))
    assert_allclose(many(100), [3 * 100**-0.6, 2 * 100**-0.2])


@pytest.mark.parametrize(("exponent", "kept"), [(-0.3, 0.0), (1.7, 1.0)])
def test_no_law_rises_or_falls_faster_than_rows_come(exponent, kept):
    sizes = np.array([10, 20, 40.0])
    errors = sizes**-exponent
    law = power_law(sizes, errors)
    assert law.exponent == kept
    # The best of all laws with this exponent, in logarithms.
    assert_allclose(np.log(law(sizes)).mean(), np.log(errors).mean())


def test_resampled_means_vary_together(rng):
    values = rng.normal(size=(50, 1)) + 0.01 * rng.normal(size=(50, 2))
    drawn = resampled_means(values, 4000, np.random.RandomState(0))
    assert_allclose(drawn.mean(axis=0), values.mean(axis=0), atol=0.02)
    assert_allclose(drawn.std(axis=0), values.std(axis=0) / np.sqrt(50), rtol=0.05)
    assert np.corrcoef(drawn.T)[0, 1] > 0.99


def blobs(n, seed=0, noise=1.0):
    """Eight classes at the corners of a cube, told by three of six columns."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 8
    corners = np.array([[code >> bit & 1 for bit in range(3)] for code in range(8)])
    rows = 3 * corners[y] + noise * random.normal(size=(n, 3))
    return np.column_stack([rows, random.normal(size=(n, 3))]), y


@pytest.fixture(scope="module", autouse=True)
def small_forests():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.party._foresee.N_TREES", 10)
        patch.setattr("datacollab.party._foresee.N_FOLDS", 3)
        patch.setattr("datacollab.party._foresee.PARTS", ((0.25, 2), (0.5, 1)))
        yield


@pytest.fixture(scope="module")
def hopeful():
    X, y = blobs(48)
    return dc.foresee(X, y, n_total_rows=960, obfuscator=obfuscator("pca", 5), fit_on=blobs(100, 1)[0], random_state=0)


def test_many_rows_and_a_mild_map_pay(hopeful):
    assert hopeful.gain.value > 0
    assert hopeful.sizes == (12, 24, 48)
    assert hopeful.pays != "no"
    # Here the power law and a map that helps would take more than all of the error.
    assert hopeful.gain.value - hopeful.obfuscator_cost.value > hopeful.alone.value
    assert hopeful.net_gain.value == pytest.approx(hopeful.alone.value)
    assert hopeful.together.value == pytest.approx(0)
    assert hopeful.defence_cost is None
    for estimate in (*hopeful.errors, hopeful.gain, hopeful.net_gain, hopeful.together):
        assert estimate.low <= estimate.value <= estimate.high


def test_a_map_that_loses_everything_does_not():
    X, y = blobs(48)
    public = blobs(100, 1)[0]
    public[:, 5] *= 100  # the one direction that a map of one column keeps says nothing of the class
    plan = dc.foresee(X, y, parties=[48, 24, 24], obfuscator=obfuscator("pca", 1), fit_on=public, random_state=0)
    assert plan.pays == "no"
    assert plan.obfuscator_cost.value > 0.3
    assert plan.sentence.startswith("Collaboration cannot be expected to pay: ")
    assert plan.n_total_rows == 96


def test_the_cost_of_a_defence_is_told_apart():
    X, y = blobs(64, noise=0.3)
    way = {"n_total_rows": 640, "obfuscator": obfuscator("pca", 5), "fit_on": blobs(100, 1)[0], "random_state": 0}
    gentle = dc.foresee(X, y, defences=[Microaggregation(2)], **way)
    harsh = dc.foresee(X, y, defences=[GaussianNoise(3.0)], **way)
    assert abs(gentle.defence_cost.value) < 0.1
    assert harsh.defence_cost.value > 0.2
    assert "the defence" in harsh.sentence
    left = harsh.gain.value - harsh.obfuscator_cost.value - harsh.defence_cost.value
    assert left < harsh.alone.value
    assert harsh.net_gain.value == pytest.approx(left)


def test_labelled_public_rows_are_on_the_side_of_alone(hopeful):
    X, y = blobs(48)
    public, labels = blobs(40, 2)
    plan = dc.foresee(
        X,
        y,
        n_total_rows=960,
        obfuscator=obfuscator("pca", 5),
        fit_on=blobs(100, 1)[0],
        public=public,
        public_target=labels,
        random_state=0,
    )
    assert plan.sizes == (22, 44, 88)
    assert plan.n_public == 40
    assert plan.alone.value < hopeful.alone.value + 0.02
    assert plan.gain.value < hopeful.gain.value
    assert "48 own rows and 40 labelled public ones" in plan.sentence


def test_numbers():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 5))
    y = X[:, 0] + 0.1 * random.normal(size=40)
    plan = dc.foresee(X, y, n_total_rows=400, obfuscator=obfuscator("pca", 5), random_state=0)
    assert plan.metric == "RMSE"
    assert plan.alone.value < 0.5
    assert "% of the error" in plan.sentence


def test_many_equal_rows_come_to_an_end():
    X, y = blobs(40)
    X[:30], y[:30] = X[0], y[0]
    plan = dc.foresee(X, y, n_total_rows=400, obfuscator=obfuscator("pca", 3), fit_on=blobs(100, 1)[0], random_state=0)
    assert plan.sizes[0] <= 10
    assert plan.sizes[1] <= 20
    assert plan.sizes[2] == 40
    assert all(np.isfinite(error.value) for error in plan.errors)


@pytest.mark.parametrize("untested", [[], [0], [2, 3]])
def test_a_part_leaves_out_a_group_that_was_never_tested(untested):
    groups = np.array([0] * 12 + [1, 2, 3, 4])
    for seed in range(30):
        drawn = _drawn(groups, np.array(untested, dtype=int), 8, np.random.RandomState(seed))
        assert 0 < len(set(drawn)) == len(drawn) <= 8
        assert len(set(groups[drawn])) >= 2
        left_out = set(range(5)) - set(groups[drawn])
        assert left_out & set(untested or range(5))


def test_public_rows_that_stand_for_the_anchor_bring_their_targets(monkeypatch):
    """Else another defence is measured than will be used."""
    X, y = blobs(40)
    public, labels = blobs(40, 2)
    seen, share = [], Party.share

    def spied(self, anchor, anchor_target=None, **rest):
        seen.append(anchor_target)
        return share(self, anchor, anchor_target, **rest)

    monkeypatch.setattr(Party, "share", spied)
    way = {
        "obfuscator": obfuscator("pca", 5),
        "fit_on": public,
        "defences": [GaussianMechanism(8.0)],
        "random_state": 0,
    }
    plan = dc.foresee(X, y, n_total_rows=960, public=public, public_target=labels, **way)
    assert plan.defence_cost is not None
    assert all(target is labels for target in seen)


def test_it_is_repeatable_json_and_frozen(hopeful):
    X, y = blobs(48)
    way = {"obfuscator": obfuscator("pca", 5), "fit_on": blobs(100, 1)[0], "random_state": 0}
    assert dc.foresee(X, y, n_total_rows=960, **way) == hopeful
    told = json.loads(json.dumps(hopeful.to_dict()))
    assert told["sentence"] == hopeful.sentence
    assert isinstance(hopeful, Foresight)
    with pytest.raises(AttributeError):
        hopeful.pays = "yes"


def test_the_figure_shows_the_curve_and_what_to_expect(hopeful):
    axes = hopeful.plot()
    curve, expected = (container.lines[0] for container in axes.containers)
    assert curve.get_xdata().tolist() == [12, 24, 48]
    assert_allclose(np.asarray(curve.get_ydata(), dtype=float), [100 * error.value for error in hopeful.errors])
    assert_allclose(np.asarray(expected.get_xdata(), dtype=float), [960])
    assert_allclose(np.asarray(expected.get_ydata(), dtype=float), [100 * hopeful.together.value])
    assert hopeful.plot(ax=axes) is axes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_total_rows": None}, "Give either"),
        ({"parties": [48, 3]}, "Give either"),
        ({"n_total_rows": 48}, "must be more than the 48 own ones"),
        ({"X": blobs(7)[0], "y": blobs(7)[1]}, "At least 8 own rows"),
        ({"y": blobs(5)[1]}, "A target is wanted for each"),
        ({"public_target": [1]}, "A target is wanted for each"),
        ({"y": np.full(48, np.nan)}, "missing"),
        ({"X": np.ones((48, 6))}, "At least three different own rows"),
    ],
)
def test_refusals(changes, message):
    X, y = blobs(48)
    with pytest.raises(AgreementError, match=message):
        dc.foresee(**({"X": X, "y": y, "n_total_rows": 960, "obfuscator": obfuscator("pca", 5)} | changes))
