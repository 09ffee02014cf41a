import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from datacollab import LTI, Analyst, Party
from datacollab.errors import AgreementError, ObfuscationError, RepeatableSecretWarning

SECRET = 1234.56789


@pytest.fixture
def table(rng):
    return rng.normal(size=(40, 5)), np.arange(40) % 2


@pytest.fixture
def anchor(rng):
    return rng.normal(size=(30, 5))


def test_share_is_the_obfuscated_rows_in_random_order(table, anchor):
    X, y = table
    share = Party("a", PCA(3), random_state=0).fit(X, y).share(anchor, np.arange(30))
    f = PCA(3).fit(X)
    order = np.argsort(share.representation[:, 0])
    expected = f.transform(X)[np.argsort(f.transform(X)[:, 0])]
    assert_allclose(share.representation[order], expected, atol=1e-10)
    assert_allclose(share.target[order], y[np.argsort(f.transform(X)[:, 0])])
    assert not np.allclose(share.representation, f.transform(X))
    assert_allclose(share.anchor_representation, f.transform(anchor), atol=1e-10)
    assert (share.anchor_target == np.arange(30)).all()


def test_rows_stay_in_order_where_asked(table, anchor):
    X, y = table
    share = Party("a", PCA(3), shuffle=False).fit(X, y).share(anchor)
    assert_allclose(share.representation, PCA(3).fit(X).transform(X), atol=1e-10)
    assert (share.target == y).all()
    assert share.anchor_target is None


def test_a_share_holds_no_private_row(table, anchor):
    X, y = table
    share = Party("a", PCA(3)).fit(X, y).share(anchor)
    message = pickle.dumps(vars(share))
    for row in np.vstack([X, anchor]):
        assert row.tobytes() not in message


def test_predicts_alone_with_its_own_model(table, anchor):
    X, y = table
    parties = [Party(name, PCA(3)).fit(X[rows], y[rows]) for name, rows in [("a", slice(20)), ("b", slice(20, 40))]]
    collaboration = Analyst(LTI(3), LogisticRegression()).fit([party.share(anchor) for party in parties])
    model = collaboration.party_model("a")
    f, g, h = PCA(3).fit(X[:20]), model.integration_function, collaboration.estimator_
    assert_allclose(parties[0].transform(X, model), g(f.transform(X)), atol=1e-10)
    assert (parties[0].predict(X, model) == h.predict(g(f.transform(X)))).all()
    assert_allclose(parties[0].predict_proba(X, model), h.predict_proba(g(f.transform(X))), atol=1e-10)
    with pytest.raises(AgreementError, match="Party 'b' was given the model made for 'a'"):
        parties[1].predict(X, model)


@pytest.mark.parametrize("before", [[], [StandardScaler()]], ids=["alone", "nested"])
def test_secrets_do_not_come_from_numpys_global_generator(table, anchor, before):
    """np.random.seed makes scikit-learn's None predictable; a party's secret must not be."""
    f = make_pipeline(*before, GaussianRandomProjection(3)) if before else GaussianRandomProjection(3)
    shares = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - what a careless script does
        shares.append(Party("a", f).fit(*table).share(anchor))
    assert not np.allclose(shares[0].anchor_representation, shares[1].anchor_representation)
    assert not np.array_equal(shares[0].target, shares[1].target)
    assert (f[-1] if before else f).random_state is None


def test_a_fixed_seed_is_a_warning(table):
    with pytest.warns(RepeatableSecretWarning, match="Party 'a'.*random_state"):
        Party("a", GaussianRandomProjection(3, random_state=1)).fit(*table)


def test_the_given_obfuscator_is_left_alone(table):
    f = PCA(3)
    Party("a", f).fit(*table)
    assert not hasattr(f, "components_")


class Fragile(PCA):
    def transform(self, X):
        raise ValueError(f"cannot transform {X[0, 0]}")


@pytest.mark.parametrize(
    ("obfuscator", "spoilt"),
    [
        (Fragile(2), np.full((5, 5), SECRET)),
        (make_pipeline(MinMaxScaler(), PCA(2)), np.full((5, 5), np.nan)),
        (make_pipeline(MinMaxScaler(), PCA(2)), np.array([[str(SECRET)] * 4 + ["Smith"]] * 5)),
        (PCA(9), np.full((5, 5), SECRET)),
        (FunctionTransformer(np.log), -np.full((5, 5), SECRET)),
        (FunctionTransformer(lambda X: X[:, :0]), np.full((5, 5), SECRET)),
    ],
    ids=["raises", "NaN", "text", "too many components", "returns NaN", "returns nothing"],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_failing_obfuscator_is_named_and_shows_no_data(obfuscator, spoilt):
    party = Party("clinic", obfuscator)
    with pytest.raises(ObfuscationError, match=r"Party 'clinic'.*Nothing left the party") as caught:
        party.fit(spoilt, np.arange(5))
    shown = "".join([str(caught.value), repr(caught.value), repr(party)])
    assert str(SECRET) not in shown
    assert "Smith" not in shown
    assert caught.value.__suppress_context__
    with pytest.raises(NotFittedError, match="no rows yet"):
        party.share(spoilt)


def test_misuse(table, anchor):
    X, y = table
    with pytest.raises(AgreementError, match=r"y must have one entry per row, shape \(40,\); got \(39,\)"):
        Party("a", PCA(3)).fit(X, y[1:])
    party = Party("a", PCA(3)).fit(X, y)
    with pytest.raises(ObfuscationError, match="Party 'a': the obfuscator PCA failed in transform"):
        party.share(anchor[:, :4])
    with pytest.raises(NotFittedError, match="call fit"):
        Party("a", PCA(3)).obfuscate(X)


def test_an_obfuscator_fitted_elsewhere_is_used_as_it_is(table, anchor):
    """f_k fitted on public rows does not memorise private ones."""
    X, y = table
    public = PCA(3).fit(anchor)
    share = Party("a", FrozenEstimator(public), shuffle=False).fit(X, y).share(anchor)
    assert_allclose(share.representation, public.transform(X), atol=1e-12)


FRAME = pd.DataFrame({"age": [31.0, 42.0, 53.0, 64.0], "bp": [1.0, 2.0, 3.0, 5.0], "chol": [7.0, 5.0, 8.0, 1.0]})

LIKELY = {
    "dates": (PCA(2), FRAME.assign(bp=pd.Timestamp(2053, 1, 1)), "column 'bp' holds dates.*such as an age in years"),
    "too many components": (PCA(4), FRAME, "n_components=4 is more than its 4 rows or 3 columns allow"),
    "one dimension": (PCA(1), FRAME["age"], r"it has shape \(4,\) instead of rows and columns"),
}


@pytest.mark.parametrize("case", LIKELY)
def test_says_what_is_likely_wrong_in_fit(case):
    obfuscator, table, message = LIKELY[case]
    with pytest.raises(ObfuscationError, match=message) as caught:
        Party("a", obfuscator).fit(table, np.arange(4))
    assert "53" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (FRAME.drop(columns="age"), r"it lacks the columns \['age'\]"),
        (FRAME[["bp", "age", "chol"]], "columns come in another order than in fit"),
        (FRAME.to_numpy()[:, :2], "it has 2 columns, but 3 in fit"),
        (FRAME.assign(bp="high"), "column 'bp' holds texts"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_says_what_is_likely_wrong_with_an_anchor(table, message):
    party = Party("a", PCA(2)).fit(FRAME, np.arange(4))
    with pytest.raises(ObfuscationError, match=message):
        party.share(table)


def test_wrong_objects_are_named(table):
    X, y = table
    with pytest.raises(TypeError, match=r"must be a transformer.*obfuscator\('pca'\); got str"):
        Party("a", "pca").fit(X, y)
    with pytest.raises(TypeError, match="Expected a PartyModel.*got str"):
        Party("a", PCA(2)).fit(X, y).predict(X, "model")
    with pytest.raises(AgreementError, match="1 of 40 entries of y are missing"):
        Party("a", PCA(2)).fit(X, [None, *y[1:]])
    for target in (y, None):
        with pytest.raises(
            ObfuscationError, match="a tuple of 2 tables .* rows and targets, as `sample` returns them, apart"
        ):
            Party("a", PCA(2)).fit(X, y).share((X, target))
