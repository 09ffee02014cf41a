import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sksurv.util import Surv

from datacollab.errors import AgreementError
from datacollab.targets import (
    EFFECT,
    SURVIVAL,
    SURVIVAL_EFFECT,
    TargetKind,
    coarsen_times,
    effect_target,
    survival_target,
    target_kind,
)


def test_survival_targets_are_those_of_scikit_survival():
    event, time = [True, False, True], [3.0, 5.5, 1.0]
    assert_array_equal(survival_target(event, time), Surv.from_arrays(event, time))


@pytest.mark.parametrize(
    ("target", "dtype", "kind"),
    [
        (survival_target([1, 0], [1.0, 2.0]), SURVIVAL, TargetKind.SURVIVAL),
        (effect_target([1, 0], [1.0, -2.0]), EFFECT, TargetKind.EFFECT),
        (effect_target([1, 0], event=[1, 1], time=[1.0, 2.0]), SURVIVAL_EFFECT, TargetKind.SURVIVAL_EFFECT),
        (np.array(["a", "b"]), np.dtype("U1"), TargetKind.SINGLE),
    ],
)
def test_kinds(target, dtype, kind):
    assert target.dtype == dtype
    assert target_kind(target) is kind


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: survival_target([1, 2], [1.0, 2.0]), "event must be 0 or 1"),
        (lambda: survival_target([1, 0], [0.0, 2.0]), "above 0; 1 of 2"),
        (lambda: survival_target([1, 0], [np.nan, 2.0]), "1 missing or infinite"),
        (lambda: survival_target([1, 0, 1], [1.0, 2.0]), "one of each"),
        (lambda: survival_target(["dead-secret", "b"], [1.0, 2.0]), "event must be numbers"),
        (lambda: survival_target([[1, 0]], [[1.0, 2.0]]), r"got shape \(1, 2\)"),
        (lambda: effect_target([1, 3], [1.0, 2.0]), "treatment must be 0 or 1"),
        (lambda: effect_target([1, 0]), "one outcome"),
        (lambda: effect_target([1, 0], [1.0, 2.0], event=[1, 0], time=[1.0, 2.0]), "one outcome"),
        (lambda: effect_target([1, 0], event=[1, 0]), "one outcome"),
    ],
)
def test_entries_without_meaning_are_refused_and_not_shown(make, message):
    with pytest.raises(AgreementError, match=message) as caught:
        make()
    assert "secret" not in str(caught.value)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20), st.sampled_from([0.1, 1.0, 7.0, 30.4375, 365.25]))
def test_coarse_times_are_multiples_at_most_a_step_later_and_stay_once_coarse(times, step):
    target = survival_target(np.ones(len(times)), times)
    coarse = coarsen_times(target, step)["time"]
    assert_allclose(coarse / step, np.round(coarse / step), rtol=1e-9)
    assert (coarse >= target["time"] * (1 - 1e-9)).all()
    assert (coarse < target["time"] + step * (1 + 1e-9)).all()
    assert (coarse > 0).all()
    assert_allclose(coarsen_times(coarsen_times(target, step), step)["time"], coarse, rtol=1e-12)
