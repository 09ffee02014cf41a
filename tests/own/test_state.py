import json
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer

import datacollab as dc
from datacollab.errors import ExchangeError, ObfuscationError
from datacollab.model import LinearMap, PartyModel
from datacollab.party import Party, local_party, obfuscator, party_state
from refusals import refused_with

KINDS = ["pca", "kernel-pca", "umap", "random-projection"]


@contextmanager
def suppress_codes(*codes):
    """Pass over a refusal with one of the codes; anything else is an error."""
    try:
        yield
    except ExchangeError as error:
        if error.code not in codes:
            raise


def after_a_restart(party):
    facts, members = party_state(party)
    return local_party(json.loads(json.dumps(facts)), members)


def same_bits(first, second):
    return first.shape == second.shape and first.tobytes() == second.tobytes()


@pytest.fixture
def table(rng):
    return rng.normal(size=(60, 7)), np.arange(60) % 2


@pytest.mark.parametrize(("standardize", "public"), [(False, False), (True, True)], ids=["own-rows", "scaled-fit_on"])
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.nightly) if k == "umap" else k for k in KINDS])
def test_every_obfuscator_maps_to_the_same_bits_after_a_restart(kind, standardize, public, table, rng):
    X, y = table
    fit_on = rng.normal(size=(50, 7)) if public else None
    options = {"n_epochs": 20} if kind == "umap" else {}
    party = Party("a", obfuscator(kind, 4, standardize=standardize, **options), fit_on=fit_on).fit(X, y)
    at_home = after_a_restart(party)
    for rows in (X, X[:1], rng.normal(size=(23, 7))):
        assert same_bits(at_home.obfuscate(rows), party.obfuscate(rows))


@pytest.mark.parametrize("shape", [(100, 600), (40, 90), (600, 40)])
def test_wide_tables_too(shape, rng):
    """PCA of a wide table keeps a part of a larger array, and the linear algebra below sees the gaps."""
    X = rng.normal(size=shape)
    for standardize in (False, True):
        party = Party("a", obfuscator("pca", 5, standardize=standardize)).fit(X, np.arange(shape[0]) % 2)
        assert same_bits(after_a_restart(party).obfuscate(X), party.obfuscate(X))


def test_other_transformers_come_back(table):
    X, y = table
    for f in (
        FactorAnalysis(3, random_state=None),
        make_pipeline(QuantileTransformer(n_quantiles=20), FunctionTransformer(np.log1p), PCA(2)),
    ):
        party = Party("a", f).fit(X, y)
        assert same_bits(after_a_restart(party).obfuscate(X), party.obfuscate(X))


def test_the_form_of_the_table_comes_back(table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    party = Party(3, PCA(2)).fit(frame, y)
    at_home = after_a_restart(party)
    h = LinearRegression().fit(party.obfuscate(frame), y)
    model = PartyModel(party=3, integration_function=LinearMap(3, np.eye(2)), estimator=h)
    predictor = at_home.predictor(model)
    assert same_bits(predictor(frame[list("gfedcba")].assign(other=1)), party.predict(frame, model))
    with pytest.raises(ObfuscationError, match=r"Party 3: 1 of the 7 columns.*\['c'\]"):
        predictor(frame.drop(columns="c"))


def test_it_predicts_alone(table, rng):
    X, y = table
    anchor = rng.normal(size=(40, 7))
    parties = [Party(name, obfuscator("pca", 4)).fit(X, y) for name in "ab"]
    analyst = dc.Analyst(dc.LTI(3), LogisticRegression())
    model = analyst.fit([party.share(anchor) for party in parties]).party_model("a")
    at_home = after_a_restart(parties[0])
    assert (at_home.predict(X, model) == parties[0].predict(X, model)).all()
    assert same_bits(at_home.predict_proba(X, model), parties[0].predict_proba(X, model))
    assert repr(at_home) == "LocalParty('a')"


@pytest.mark.parametrize("kind", ["pca", "random-projection"])
def test_the_rows_are_not_in_the_state(kind, table):
    X, y = table
    facts, members = party_state(Party("a", obfuscator(kind, 4, standardize=True)).fit(X, y))
    everything = json.dumps(facts).encode() + b"".join(members.values())
    assert not any(row.tobytes() in everything for row in X)


def test_what_cannot_be_stored_is_refused(table):
    X, y = table
    with refused_with("STATE_UNSUPPORTED"):
        party_state(Party("a", make_pipeline(FunctionTransformer(lambda rows: 2 * rows), PCA(2))).fit(X, y))
    with refused_with("STATE_UNSUPPORTED"):
        party_state(Party("a", StrangersPCA(2)).fit(X, y))
    with pytest.raises(NotFittedError):
        party_state(Party("a", PCA(2)))


@pytest.mark.nightly
def test_umap_that_maps_new_rows_itself_is_refused(table):
    with refused_with("STATE_UNSUPPORTED"):
        party_state(Party("a", obfuscator("umap", 2, out_of_sample="umap")).fit(*table))


class StrangersPCA(PCA):
    """A type that nobody has looked at."""


def test_a_type_that_is_not_trusted_is_refused_before_it_is_made(table):
    import skops.io

    X, y = table
    facts, members = party_state(Party("a", PCA(2)).fit(X, y))
    members["obfuscator.skops"] = skops.io.dumps(Traitor(2).fit(X))
    with refused_with("STATE_DAMAGED"):
        local_party(facts, members)


class Traitor(PCA):
    def __setstate__(self, state):
        pytest.fail("it was constructed")


def test_another_version_of_scikit_learn_is_refused(table):
    X, y = table
    facts, members = party_state(Party("a", PCA(2)).fit(X, y))
    with refused_with("VERSION_MISMATCH"):
        local_party(facts | {"sklearn": "0.17.1"}, members)


@pytest.mark.parametrize("missing", ["party", "form", "gaps", "sklearn", "rotation_order", "obfuscator.skops"])
def test_a_state_with_a_part_missing_is_damaged(missing, table, rng):
    X, y = table
    facts, members = party_state(Party("a", PCA(2), fit_on=rng.normal(size=(20, 7))).fit(X, y))
    for part in (facts, members):
        part.pop(missing, None)
    with refused_with("STATE_DAMAGED"):
        local_party(facts, members)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_state_is_refused_or_the_same(place, byte, cut):
    X = np.random.default_rng(0).normal(size=(30, 4))
    party = Party("a", PCA(2), fit_on=X[:20]).fit(X[20:], np.arange(10))
    facts, members = party_state(party)
    for name, data in members.items():
        at = int(place * len(data))
        changed = data[:at] if cut else data[:at] + bytes([byte]) + data[at + 1 :]
        with suppress_codes("STATE_DAMAGED", "VERSION_MISMATCH"):
            local_party(facts, members | {name: changed})


@given(
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
    above=st.integers(0, 3),
    step=st.sampled_from([1, 2, -1, -3]),
    transposed=st.booleans(),
)
def test_arrays_with_gaps_map_to_the_same_bits(rows, columns, above, step, transposed):
    """Linear algebra below looks at how an array lies in memory."""
    whole = np.sin(np.arange(float((rows + above) * columns * abs(step)))).reshape(rows + above, -1)
    part = whole[:rows, ::step]
    f = PCA().fit(np.random.default_rng(0).normal(size=(12, columns)))
    f.components_ = np.asfortranarray(part)[::-1] if transposed else part
    X = np.random.default_rng(1).normal(size=(12, columns))
    party = Party("a", FrozenEstimator(f)).fit(X, np.arange(12) % 2)
    assert same_bits(after_a_restart(party).obfuscate(X), party.obfuscate(X))


@pytest.mark.parametrize("strides", [[8, 8], [0, 8], [16, 4], [8], [8, 16, 4]])
def test_gaps_that_do_not_fit_are_refused(strides, table):
    X, y = table
    facts, members = party_state(Party("a", PCA(2)).fit(X, y))
    with refused_with("STATE_DAMAGED"):
        local_party(facts | {"gaps": {"0": strides}}, members)
