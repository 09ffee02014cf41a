"""Integrators give data frames where they are asked to, and arrays to whoever works with a clone."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import datacollab as dc
from datacollab.analyst import GEP, KTI, LTI, MPP, ODC, AnchorScaled

RNG = np.random.default_rng(0)
ANCHORS = {party: RNG.normal(size=(40, 4)) for party in ("a", "b")}
INTEGRATORS = [MPP(3), GEP(3), ODC(), LTI(3), KTI(3), AnchorScaled()]


@pytest.mark.parametrize("integrator", INTEGRATORS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(("library", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_frames_hold_the_numbers_of_the_arrays_under_the_methods_names(integrator, library, frame):
    fitted = clone(integrator).fit(ANCHORS)
    arrays = fitted.transform(ANCHORS)
    assert fitted.set_output(transform=library) is fitted
    frames = fitted.transform(ANCHORS)
    names = [f"{type(integrator).__name__.lower()}{number}" for number in range(arrays["a"].shape[1])]
    assert list(fitted.get_feature_names_out()) == names
    for party, rows in frames.items():
        assert type(rows) is frame
        assert list(rows.columns) == names
        np.testing.assert_array_equal(rows.to_numpy(), arrays[party])
    again = fitted.set_output(transform="default").transform(ANCHORS)
    assert all(isinstance(rows, np.ndarray) for rows in again.values())


def test_a_frame_keeps_the_index_of_its_table():
    table = pd.DataFrame(ANCHORS["a"], index=[f"row {number}" for number in range(40)])
    rows = LTI(2).set_output(transform="pandas").fit(ANCHORS).transform({"a": table})["a"]
    assert list(rows.index) == list(table.index)


def test_fit_transform_gives_frames_and_none_changes_nothing():
    integrator = LTI(2).set_output(transform="pandas").set_output(transform=None)
    assert isinstance(integrator.fit_transform(ANCHORS)["b"], pd.DataFrame)
    with pytest.raises(ValueError, match="'pandas', 'polars'"):
        integrator.set_output(transform="excel")


@pytest.mark.usefixtures("few_trees")
def test_the_analyst_works_with_arrays_and_gets_the_same_model():
    X, y = dc.datasets.load("digits")
    parties = [dc.Party(name, dc.obfuscator("pca", n_components=6)).fit(X[at : at + 40], y[at : at + 40])
               for name, at in (("a", 0), ("b", 60))]  # fmt: skip
    shares = [party.share(X[200:260]) for party in parties]
    plain, framed = (dc.Analyst(each).fit(shares) for each in (LTI(4), LTI(4).set_output(transform="pandas")))
    for party in ("a", "b"):
        assert isinstance(framed.representations_[party], np.ndarray)
        np.testing.assert_array_equal(framed.representations_[party], plain.representations_[party])
    AnchorScaled(LTI(3).set_output(transform="pandas")).fit(ANCHORS)
