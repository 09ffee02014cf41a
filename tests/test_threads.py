"""Linear algebra takes one thread inside small fits and commands."""

import os
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

import datacollab as dc
from datacollab import cli

GENERATOR = np.random.default_rng(0)
X, ANCHOR = GENERATOR.normal(size=(60, 5)), GENERATOR.normal(size=(80, 5))
Y = (X[:, 0] > 0).astype(int)


def n_threads():
    return {library["num_threads"] for library in threadpool_info()}


@pytest.fixture(autouse=True)
def several():
    """More than one by default, whatever the environment says."""
    with threadpool_limits(limits=2):
        if n_threads() != {2}:
            pytest.skip("some library cannot be told to take two threads")
        yield


class Watching(LogisticRegression):
    """Keeps how many threads there were while it was fitted."""

    seen = None

    def fit(self, X, y, sample_weight=None):
        type(self).seen = n_threads()
        return super().fit(X, y, sample_weight)


class WatchingMap(TransformerMixin, BaseEstimator):
    seen = None

    def fit(self, X, y=None):
        type(self).seen = n_threads()
        self.pca_ = PCA(3, random_state=0).fit(X)
        return self

    def transform(self, X):
        return self.pca_.transform(X)


def shares(anchor):
    parties = [dc.Party(name, PCA(3)).fit(X, Y) for name in ("a", "b")]
    return [party.share(anchor) for party in parties]


@pytest.mark.slow
def test_fits_of_parties_and_analysts():
    dc.Party("a", WatchingMap()).fit(X, Y)
    assert WatchingMap.seen == {1}
    dc.Analyst(dc.LTI(2), Watching()).fit(shares(ANCHOR))
    assert Watching.seen == {1}
    dc.Analyst("auto", Watching()).fit(shares(ANCHOR))
    assert Watching.seen == {1}
    assert n_threads() == {2}


class WatchingKernel:
    """A kernel between two rows that keeps how many threads there were when it was first called."""

    seen = None

    def __call__(self, x, y):
        type(self).seen = type(self).seen or n_threads()
        return np.exp(-((x - y) ** 2).sum())


def test_kernel_integrators_by_themselves():
    views = {"a": ANCHOR[:20, :3], "b": np.tanh(ANCHOR[:20, 1:])}
    dc.KTI(2, kernel=WatchingKernel()).fit(views)
    assert WatchingKernel.seen == {1}
    WatchingKernel.seen = None
    dc.KTICV(2, kernels=[WatchingKernel()], alphas=[1.0], cv=2).fit(views)
    assert WatchingKernel.seen == {1}
    assert n_threads() == {2}


def test_large_problems_keep_their_threads():
    dc.Analyst(dc.LTI(2), Watching()).fit(shares(GENERATOR.normal(size=(3_001, 5))))
    assert Watching.seen == {2}


@pytest.mark.parametrize(("given", "taken"), [(None, "1"), ("3", "3")])
def test_commands_take_one_unless_told_otherwise(given, taken, monkeypatch):
    kept = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    monkeypatch.setattr(os, "environ", kept | ({} if given is None else {"OMP_NUM_THREADS": given}))
    monkeypatch.setattr(sys, "argv", ["datacollab", "--version"])
    # This process goes on, and may leave what it likes.
    monkeypatch.setattr(cli, "_no_core_dumps", lambda: None)
    with pytest.raises(SystemExit):
        cli.main()
    assert (os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]) == (taken, "1")


def test_an_audit_takes_one_thread():
    seen = []
    party = dc.Party("a", PCA(3)).fit(X, Y)
    asked = {"levels": ["T2"], "attacks": ["linear regression"]}
    dc.audit(party, X, ANCHOR, **asked, progress=lambda *step: seen.append(n_threads()))
    assert set().union(*seen) == {1}
