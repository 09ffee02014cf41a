"""From outputs to probabilities and numbers: formulas, special cases, and what holds for all inputs."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

from datacollab.errors import AgreementError
from datacollab.sums import RidgeFromSums, RidgeSums, SumsModel, fences
from datacollab.sums._class_link import ClassLink, class_link, soft_positive

FORMATS = Path(__file__).parents[2] / "docs" / "formats.md"
outputs = st.lists(st.floats(-5, 5), min_size=3, max_size=3)
positive = st.lists(st.floats(1e-4, 10), min_size=3, max_size=3)


def model(W, b, *, link=None, classes=None, **options):
    fit = RidgeFromSums(np.array(W, dtype=float), np.array(b, dtype=float), 1.0, 100.0, link=link)
    return SumsModel(fit, classes, options.pop("limits", None), bytes(32), **options)


@given(outputs, positive, positive)
def test_probabilities_are_the_formula_positive_and_a_distribution(f, t, w):
    link = ClassLink(np.array(t), np.array(w))
    said = link.probabilities(np.array([f]))[0]
    triples = zip(f, t, w, strict=True)
    naive = [own_w * (own_f + np.sqrt(own_f**2 + 4 * own_t**2)) / 2 for own_f, own_t, own_w in triples]
    assert said.min() > 0
    assert said.sum() == pytest.approx(1)
    assert_allclose(said, np.array(naive) / np.sum(naive), rtol=1e-4, atol=1e-7)


@given(st.floats(-3, 3), st.floats(1e-6, 3), st.floats(1e-4, 1), st.floats(0.1, 10))
def test_of_two_classes_a_larger_output_is_a_larger_probability(f, step, t, w):
    """Outputs of two classes add up to 1: no two people share a floor."""
    link = ClassLink(np.full(2, t), np.array([w, 1.0]))
    lower, higher = link.probabilities(np.array([[f, 1 - f], [f + step, 1 - f - step]]))[:, 0]
    assert lower < higher


def test_weights_keep_each_classs_share_in_the_mean():
    """By numerical integration over normal outputs."""
    shares, of_outputs, of_fit = np.array([0.02, 0.98]), np.array([4e-4, 4e-4]), np.array([1e-4, 1e-4])
    link = class_link(shares, of_outputs, of_fit, 2000.0)
    assert_allclose(link.softness, 0.35 * 0.01)
    for share, t, w in zip(shares, link.softness, link.weights, strict=True):

        def weighed(f, share=share, t=t):
            return soft_positive(np.array(f), t) * stats.norm.pdf(f, share, 0.02)

        assert w * quad(weighed, share - 0.2, share + 0.2, points=[share])[0] == pytest.approx(share, rel=1e-3)


def noisy_total(sums, v, y, rng):
    part = sums.part(v, y)
    return part + rng.normal(size=part.shape) * sums.noise_of_each


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_where_a_total_says_nothing_the_shares_of_rows_are_predicted(share, rng):
    """Labels dealt at random: in most draws little is kept, and never is it far worse than the constant."""
    constant, losses = 0, []
    for _ in range(16):
        v = rng.normal(size=(600, 20)) / 8
        v /= np.maximum(1, np.linalg.norm(v, axis=1, keepdims=True))
        y = (rng.random(600) < share).astype(int)
        sums = RidgeSums(20, classes=(0, 1), noise=0.1)
        found = SumsModel(sums.solve(noisy_total(sums, v[:400], y[:400], rng)), (0, 1), None, bytes(32))
        said = found.predict_proba(v[400:])
        assert found.constant_classes in ((), (0, 1))
        if found.constant_classes:
            constant += 1
            assert said[:, 1].std() < 0.02
            assert said[:, 1].mean() == pytest.approx(y[:400].mean(), abs=0.01)
        losses.append(-np.log(said[np.arange(200), y[400:]]).mean() / stats.bernoulli(y[:400].mean()).entropy())
    assert constant >= 6
    assert np.mean(losses) < 1.1


def test_where_a_total_says_much_nearly_all_is_kept(rng):
    v = rng.normal(size=(2000, 10)) / 6
    v /= np.maximum(1, np.linalg.norm(v, axis=1, keepdims=True))
    y = (v[:, 0] + v[:, 1] > 0.1).astype(int)
    sums = RidgeSums(10, classes=(0, 1), noise=0.1)
    fit = sums.solve(noisy_total(sums, v, y, rng))
    assert min(fit.reliability) > 0.95
    said = SumsModel(fit, (0, 1), None, bytes(32)).predict_proba(v)
    assert said[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)


def test_numbers_have_no_probabilities():
    with pytest.raises(AgreementError, match="no probabilities"):
        model(np.zeros((2, 1)), [0.0], limits=(0.0, 1.0)).predict_proba(np.zeros((1, 2)))


LIMITS = st.tuples(st.floats(0, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(LIMITS, st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_logarithms_and_back(limits, places):
    sums = RidgeSums(2, limits=limits, scale="log")
    y = np.clip(limits[0] + np.array(places) * (limits[1] - limits[0]), *limits)
    encoded = sums.encode(y)
    assert np.abs(encoded).max() <= 1 + 1e-9
    assert_allclose(sums.decode(encoded), y, rtol=1e-6, atol=1e-6 * limits[1])


@given(LIMITS, st.floats(-3, 3), st.floats(0, 1))
def test_predictions_of_logarithms_stay_within_the_limits(limits, output, residual):
    (found,) = RidgeSums(2, limits=limits, scale="log").decode(np.array([[output]]), residual)
    assert limits[0] <= found <= limits[1]


def test_the_scale_of_logarithms_is_that_of_logarithms_taken_by_hand(rng):
    """With a lower limit above a thousandth of the upper one, nothing is added before."""
    v = rng.normal(size=(500, 6)) / 5
    v /= np.maximum(1, np.linalg.norm(v, axis=1, keepdims=True))
    y = np.clip(np.exp(2 * v[:, 0] + 0.3 * rng.normal(size=500) + 2), 0.5, 100)
    logs = RidgeSums(6, limits=(0.5, 100.0), scale="log", noise=0.1)
    by_hand = RidgeSums(6, limits=(np.log(0.5), np.log(100.0)), noise=0.1)
    total = noisy_total(logs, v, y, rng)
    assert_allclose(logs.part(v, y), by_hand.part(v, np.log(y)), atol=1e-9)
    fit = logs.solve(total)
    assert_allclose(logs.decode(fit.predict(v)), np.exp(by_hand.decode(by_hand.solve(total).predict(v))))
    # The mean of a log-normal number, as it is hardly ever clipped.
    sigma = fit.residual * (np.log(100.0) - np.log(0.5)) / 2
    assert sigma == pytest.approx(0.3, abs=0.05)
    inner = np.abs(fit.predict(v)[:, 0]) < 0.4
    means = np.exp(by_hand.decode(fit.predict(v)) + sigma**2 / 2)
    assert_allclose(logs.decode(fit.predict(v), fit.residual)[inner], means[inner], rtol=1e-3)


def test_zeros_have_a_place_on_the_scale_of_logarithms():
    encoded = RidgeSums(2, limits=(0.0, 1000.0), scale="log").encode([0.0, 1.0, 1000.0])[:, 0]
    assert_allclose(encoded, 2 * np.log([1, 2, 1001]) / np.log(1001) - 1)


@pytest.mark.parametrize(
    "options",
    [{"limits": (-1.0, 1.0)}, {"classes": (0, 1)}, {"limits": (0.0, 1.0), "scale": "ln"}],
    ids=["below 0", "classes", "another"],
)
def test_a_scale_without_sense_is_refused(options):
    with pytest.raises(AgreementError, match=r"expected no scale, or 'log'"):
        RidgeSums(4, **({"scale": "log"} | options))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_fences_lie_within_the_range_and_hold_nine_tenths(values):
    y = np.array(values)
    low, high = fences(y)
    assert y.min() <= low <= high <= y.max()
    assert np.mean((y >= low) & (y <= high)) >= 0.9 - 2 / len(y)


@pytest.mark.parametrize("n_far", [1, 5])
@pytest.mark.parametrize("size", [1e3, -1e9])
def test_a_few_numbers_move_no_fence(n_far, size, rng):
    y = rng.normal(size=300)
    found = fences(np.append(y, [size] * n_far))
    assert np.abs(found).max() < 12


@pytest.mark.parametrize("draw", ["normal", "uniform", "poisson", "triangular"])
def test_plain_numbers_keep_their_range(draw, rng):
    options = {"triangular": (0, 0.2, 1), "poisson": (3,)}.get(draw, ())
    for _ in range(20):
        y = getattr(rng, draw)(*options, size=500)
        assert fences(y) == (y.min(), y.max())


def test_fences_of_logarithms_leave_zeros_in(rng):
    y = np.exp(rng.normal(size=300))
    assert fences(y, scale="log") == pytest.approx((y.min(), y.max()))
    low, high = fences(np.append(y, [0.0, 1e12]), scale="log")
    assert low == 0
    assert high < 1e6
    assert fences(np.zeros(5), scale="log") == (0.0, 1.0)


def test_the_known_answers_of_the_page():
    page = FORMATS.read_text(encoding="utf-8")
    words = r"the probabilities are (\S+) and (\S+)\. .*?prediction is (\S+); with σ = 0\.2 it is (\S+)\.\n"
    said = re.search(words, page, re.DOTALL)
    link = ClassLink(np.array([0.01, 0.01]), np.array([0.5, 1.0]))
    logs = RidgeSums(2, limits=(0.0, 1000.0), scale="log")
    found = [*link.probabilities(np.array([[0.02, 0.98]]))[0]]
    found += [logs.decode(np.array([[0.5]]), residual)[0] for residual in (0.0, 0.2)]
    assert_allclose(found, [float(each) for each in said.groups()], rtol=1e-6)
