"""The analyst: shares in, one model per party out; frames where they are asked for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from datacollab import GEP, KTI, KTICV, LTI, MPP, ODC, Analyst, Party, Share, TargetSimilarityGraph
from datacollab.errors import AgreementError, RepresentationError, UnknownPartyError


@pytest.fixture
def anchor(rng):
    return rng.normal(size=(50, 6))


@pytest.fixture
def shares(rng, anchor):
    X = rng.normal(size=(60, 6))
    y = (X[:, 0] > 0).astype(int)
    parties = [Party(name, PCA(4)).fit(X[i::2], y[i::2]) for i, name in enumerate("ab")]
    return [party.share(anchor, anchor[:, 0] > 0) for party in parties]


def changed(share, **changes):
    return Share(**{**vars(share), **changes})


def test_model_is_trained_on_all_collaboration_representations(shares):
    collaboration = Analyst(LTI(4), LogisticRegression()).fit(shares)
    lti = LTI(4).fit({share.party: share.anchor_representation for share in shares})
    X = np.vstack([lti.integration_functions_[share.party](share.representation) for share in shares])
    y = np.concatenate([share.target for share in shares])
    h = LogisticRegression().fit(X, y)
    assert_allclose(collaboration.estimator_.coef_, h.coef_, atol=1e-8)
    assert_allclose(np.vstack(list(collaboration.representations_.values())), X, atol=1e-12)
    assert collaboration.parties == ["a", "b"]


def test_a_party_model_holds_its_own_map_only(shares):
    collaboration = Analyst(KTI(3), LogisticRegression()).fit(shares)
    model = collaboration.party_model("b")
    assert model.party == model.integration_function.party == "b"
    assert_allclose(model.integration_function.anchor_representation, shares[1].anchor_representation)
    with pytest.raises(UnknownPartyError, match=r"Party 'c' took no part; the parties are \['a', 'b'\]"):
        collaboration.party_model("c")


def test_estimators_given_are_left_alone(shares):
    analyst = Analyst(LTI(4), LogisticRegression())
    analyst.fit(shares)
    assert not hasattr(analyst.integrator, "target_")
    assert not hasattr(analyst.estimator, "coef_")


def test_anchor_targets_reach_the_graph(shares):
    analyst = Analyst(KTI(3, graph=TargetSimilarityGraph(5)), LogisticRegression())
    analyst.fit(shares)
    analyst.fit([changed(shares[0], anchor_target=None), shares[1]])  # one party that sends them is enough
    with pytest.raises(ValueError, match="needs the targets of the anchor rows"):
        analyst.fit([changed(share, anchor_target=None) for share in shares])


def test_disagreements_are_named(shares):
    analyst = Analyst(LTI(4), LogisticRegression())
    with pytest.raises(AgreementError, match="Two shares carry the name 'a'"):
        analyst.fit([shares[0], shares[0]])
    with pytest.raises(AgreementError, match="'a' and 'b' sent different anchor targets"):
        analyst.fit([shares[0], changed(shares[1], anchor_target=~shares[1].anchor_target)])
    with pytest.raises(AgreementError, match=r"numbers and others' are text: \{'a': 'numbers', 'b': 'text'\}"):
        analyst.fit([shares[0], changed(shares[1], target=shares[1].target.astype(str))])
    with pytest.raises(AgreementError, match=r"differ: \{'a': 50, 'b': 49\}"):
        short = changed(shares[1], anchor_representation=shares[1].anchor_representation[1:], anchor_target=None)
        analyst.fit([shares[0], short])
    with pytest.raises(RepresentationError, match="Party 'b': all 50 rows"):
        analyst.fit([shares[0], changed(shares[1], anchor_representation=np.ones((50, 4)))])
    with pytest.raises(AgreementError, match="Expected at least two shares"):
        analyst.fit([])
    with pytest.raises(TypeError, match="Expected shares"):
        analyst.fit([{"party": "a"}])
    with pytest.raises(TypeError, match="Expected a list of shares.*got one Share"):
        analyst.fit(shares[0])
    with pytest.raises(TypeError, match="integrator must be an integration method.*got LogisticRegression"):
        Analyst(LogisticRegression(), LTI(4)).fit(shares)


def test_reprs_show_no_data(shares):
    analyst = Analyst(LTI(4), LogisticRegression())
    assert repr(analyst) == "Analyst(integrator=LTI(n_components=4), estimator=LogisticRegression())"
    assert repr(analyst.fit(shares)) == (
        "Collaboration(parties=['a', 'b'], integrator=LTI, estimator=LogisticRegression)"
    )
    assert "array" not in repr(analyst.fit(shares).party_model("a"))


def constant_columns(X):
    return np.hstack([X[:, :2], np.ones((len(X), X.shape[1] - 2))])


def equal_columns(X):
    return np.repeat(X[:, :1], X.shape[1], axis=1)


ODD_SHARES = {
    "anchor of zeros": {"anchor_representation": lambda X: 0 * X},
    "rows of zeros": {"representation": lambda X: 0 * X},
    "all of zeros": {"representation": lambda X: 0 * X, "anchor_representation": lambda X: 0 * X},
    "constant columns": dict.fromkeys(("representation", "anchor_representation"), constant_columns),
    "equal columns": dict.fromkeys(("representation", "anchor_representation"), equal_columns),
    "huge": dict.fromkeys(("representation", "anchor_representation"), lambda X: 1e28 * X),
    "huge rows": {"representation": lambda X: 1e28 * X},
    "huge anchor": {"anchor_representation": lambda X: 1e28 * X},
    "one huge column": dict.fromkeys(("representation", "anchor_representation"), lambda X: X * [1e28, 1, 1, 1]),
    "tiny": dict.fromkeys(("representation", "anchor_representation"), lambda X: 1e-300 * X),
    "tiny anchor": {"anchor_representation": lambda X: 1e-300 * X},
    "far away": dict.fromkeys(("representation", "anchor_representation"), lambda X: X + 1e12),
}


SEARCHED = ("all of zeros", "constant columns", "huge", "tiny anchor")
"""The odd shares with which the two methods that try many others are tried as well."""


@pytest.mark.usefixtures("light_choices")
@pytest.mark.filterwarnings("error:overflow", "error:invalid value")
@pytest.mark.parametrize(
    ("odd", "integrator"),
    [
        *((odd, each) for odd in ODD_SHARES for each in (KTI(4), LTI(4), GEP(4), MPP(4), ODC())),
        *((odd, each) for odd in SEARCHED for each in (KTICV(), "auto")),
    ],
    ids=str,
)
@pytest.mark.slow
def test_a_share_with_which_nothing_can_be_done_is_named(shares, odd, integrator):
    """Where such a share can be integrated, all is well; where it cannot, it is known whose it is."""
    first, other = (changed(share, anchor_target=None) for share in shares)
    changes = {name: change(getattr(other, name)) for name, change in ODD_SHARES[odd].items()}
    three = [changed(first, party="north"), changed(other, party="middle", **changes), changed(other, party="south")]
    model = "auto" if integrator == "auto" else LogisticRegression(max_iter=5000)
    collaboration, refusal = None, ""
    try:
        collaboration = Analyst(integrator, model).fit(three)
    except (ValueError, ArithmeticError) as error:
        refusal = str(error)
    if collaboration is None:
        assert "'middle'" in refusal
        return
    for share in three:
        predicted = collaboration.party_model(share.party).predict(share.representation)
        assert set(predicted) <= {0, 1}
