"""Readings that were tried on printed numbers: each changes what it says and nothing else, and scores can go on."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler
from trials import DIGITS, distinct_digits

from datacollab.analyst import LTI
from datacollab_experiments.paper import draw_trial, score_method
from datacollab_experiments.paper._trial import fit_parties
from datacollab_experiments.readings import tries

CONDITION = replace(DIGITS, obfuscator="pca", hyperparameters="paper", split="label-skew", n_sources=None)


@pytest.mark.slow
def test_as_run_is_what_experiments_score_and_other_readings_are_not():
    data = distinct_digits()
    condition = replace(CONDITION, n_anchors=400)
    readings = dict(tries._lti_readings(condition, data, tries.standardised(data), 1))
    as_run = readings.pop(tries.AS_RUN)()
    assert as_run == pytest.approx(
        score_method(draw_trial(condition, data, 1), "LTI", condition, "classification").value
    )
    for name in ("300 anchors", "pixels standardised over all rows", "PCA without centring", "50 trees",
                 "each party standardises its integrated rows", "each party trains on its own rows alone"):  # fmt: skip
        assert readings[name]() != as_run, name


def test_another_obfuscator_has_the_rows_of_the_same_trial():
    data = distinct_digits()
    usual, other = (
        fit_parties(CONDITION, data, 3), tries.fitted_with(CONDITION, data, 3, tries.pca(standardize=True))
    )  # fmt: skip
    same = tries.fitted_with(CONDITION, data, 3, tries.pca(standardize=data.name != "digits"))
    for party, rows in usual.test_representations.items():
        np.testing.assert_allclose(same.test_representations[party], rows)
        assert not np.allclose(other.test_representations[party], rows)
        np.testing.assert_array_equal(other.split[party][0], usual.split[party][0])


def test_each_party_alone_and_by_its_own_scale():
    trial = draw_trial(CONDITION, distinct_digits(), 2)
    own = LTI(n_components=CONDITION.n_components).fit({s.party: s.anchor_representation for s in trial.shares})
    expected = []
    for share in trial.shares:
        rows = own.transform({share.party: share.representation})[share.party]
        scaler = StandardScaler().fit(rows)
        model = RandomForestClassifier(random_state=2).fit(scaler.transform(rows), share.target)
        tested = own.transform({share.party: trial.test_representations[share.party]})[share.party]
        expected.append(np.mean(model.predict(scaler.transform(tested)) == trial.y_test))
    found = tries.accuracy(trial, LTI(n_components=CONDITION.n_components), by_party=True, alone=True)
    assert found == pytest.approx(np.mean(expected))


def test_columns_are_standardised_over_all_rows():
    data = distinct_digits()
    before = data.X.copy()
    scaled = tries.standardised(data)
    varied = scaled.X[:, before.std(axis=0) > 0]
    np.testing.assert_allclose(varied.std(axis=0), 1)
    np.testing.assert_allclose(varied.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_array_equal(data.X, before)


def test_a_run_goes_on_where_its_file_ends(tmp_path, monkeypatch):
    computed = []

    def tried(datasets, scaled, seed):
        assert set(datasets) == set(scaled) == {"digits"}
        for reading in ("a, b", "c"):
            yield (
                reading,
                ("digits", "pca", None, "LTI"),
                lambda reading=reading: computed.append((reading, seed)) or seed,
            )

    monkeypatch.setitem(tries._TRIES, "lti", (("digits",), tried))
    file = tmp_path / "tries.csv"
    tries.main(["lti", "--seeds", "1", "--to", str(file)])
    tries.main(["lti", "--seeds", "2", "--to", str(file)])
    assert computed == [("a, b", 0), ("c", 0), ("a, b", 1), ("c", 1)]
    cell = ("digits", "pca", None, "LTI")
    assert tries.read(file) == {"a, b": {cell: {0: 0.0, 1: 1.0}}, "c": {cell: {0: 0.0, 1: 1.0}}}
