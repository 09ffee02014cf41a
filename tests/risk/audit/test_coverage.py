"""Whether stated intervals cover the rate that attacks have in the long run, over tables drawn from one population."""

import numpy as np
import pytest
from numpy.random import RandomState
from scipy import stats

import datacollab as dc
from datacollab.party import GaussianNoise, Microaggregation
from datacollab.risk.audit import audit

EXACT_MAP = "exact map"
REPETITIONS, LONG_RUN = 40, 80
METRICS = {"linkage": EXACT_MAP, "membership AUC": f"{EXACT_MAP}, distance", "open-world linkage": EXACT_MAP}


def found(anchor, seed, defence, n_rows=60):
    """One table's figures, by metric."""
    rng = np.random.default_rng(seed)
    X, strangers = rng.normal(size=(n_rows, 6)), rng.normal(size=(120, 6))
    f = dc.obfuscator("pca", n_components=4)
    party = dc.Party("a", f, fit_on=anchor, defences=[defence], random_state=RandomState(seed))
    result = audit(
        party.fit(X, np.zeros(n_rows, dtype=int)),
        X,
        anchor,
        control=strangers,
        levels=["T2"],
        attacks=["forward emulator", "membership"],
        random_state=seed,
    )
    return {
        metric: next(one for one in result.findings if (one.metric, one.attack) == (metric, attack))
        for metric, attack in METRICS.items()
    }


@pytest.mark.nightly
@pytest.mark.parametrize("defence", [GaussianNoise(0.5), Microaggregation(3)], ids=["noise", "groups of 3"])
def test_intervals_cover_the_long_run(defence):
    """The rate is known from many other tables, none of them among those whose intervals are counted."""
    anchor = np.random.default_rng(99).normal(size=(100, 6))
    truth = [found(anchor, 10_000 + seed, defence) for seed in range(LONG_RUN)]
    tables = [found(anchor, seed, defence) for seed in range(REPETITIONS)]
    # So few would be covered once in a thousand times if each were with a chance of .95.
    least = stats.binom.ppf(0.001, REPETITIONS, 0.95)
    for metric in METRICS:
        rate = np.mean([each[metric].value for each in truth])
        covered = sum(each[metric].low <= rate <= each[metric].high for each in tables)
        above = sum(rate <= each[metric].high for each in tables)
        assert covered >= least, (metric, covered, rate)
        assert above >= stats.binom.ppf(0.001, REPETITIONS, 0.975), (metric, above, rate)
