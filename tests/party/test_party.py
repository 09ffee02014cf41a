"""A party fits, shares and forgets; targets with names."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.random_projection import GaussianRandomProjection

import datacollab as dc
from datacollab import LTI, Analyst, Party
from datacollab.errors import AgreementError, ExchangeError, ObfuscationError, RepeatableSecretWarning, ShareError
from datacollab.party import Microaggregation
from datacollab.targets import TargetKind, effect_target, survival_target

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


RANDOM = np.random.default_rng(0)
X, ANCHOR = RANDOM.normal(size=(120, 5)), RANDOM.normal(size=(60, 5))
EVENT, TREATMENT = RANDOM.random(120) < 0.6, RANDOM.integers(0, 2, 120)
TIME, OUTCOME = 1.0 + RANDOM.exponential(400.0, size=120), RANDOM.normal(size=120)
TARGETS = {
    "survival": survival_target(EVENT, TIME),
    "effect": effect_target(TREATMENT, OUTCOME),
    "survival-effect": effect_target(TREATMENT, event=EVENT, time=TIME),
    "none": None,
}
NAMED = [TARGETS["survival"], TARGETS["effect"], TARGETS["survival-effect"]]


def party(**options):
    return dc.Party("a", dc.obfuscator("pca", 3), **options)


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_leave_beside_their_rows(kind):
    """Rows are shuffled; each keeps its own target."""
    y = TARGETS[kind]
    share, order = party(time_step=None).fit(X, y).share_with_order(ANCHOR)
    assert share.target_kind is TargetKind(kind)
    if y is not None:
        assert_array_equal(share.target, y[order])
    assert_allclose(share.representation, party(shuffle=False).fit(X, y).share(ANCHOR).representation[order])


@pytest.mark.parametrize("kind", TARGETS)
def test_shares_are_read_as_they_were_written(kind, tmp_path):
    y = TARGETS[kind]
    share = party().fit(X, y).share(ANCHOR, None if y is None else y[:60])
    share.save(tmp_path / "a.dcshare")
    read = dc.Share.load(tmp_path / "a.dcshare")
    assert read.target.dtype == share.target.dtype
    assert_array_equal(read.target, share.target)
    if y is not None:
        assert_array_equal(read.anchor_target, share.anchor_target)
    assert repr(read) == repr(share)
    assert kind in repr(read)


def test_times_leave_in_steps_unless_it_is_said_otherwise():
    y = TARGETS["survival"]
    for step, wanted in (("auto", None), (30.0, 30.0), (None, 0.0)):
        shown = party(time_step=step, shuffle=False).fit(X, y).share(ANCHOR).target
        assert_array_equal(shown["event"], y["event"])
        late = shown["time"] - y["time"]
        if wanted == 0.0:
            assert_array_equal(late, 0.0)
            continue
        found = np.min(np.diff(np.unique(shown["time"])))
        most = min(TIME.max() / 60, np.median(TIME[y["event"]]) / 3)
        assert most / 2 < found <= most * (1 + 1e-9) if wanted is None else found == wanted
        assert late.min() >= 0
        assert late.max() < found
    assert len(np.unique(party().fit(X, y).share(ANCHOR).target["time"])) < len(np.unique(TIME)) / 2


@pytest.mark.parametrize(("longest", "step"), [(60.0, 1.0), (179.0, 2.0), (1825.0, 30.0), (2400.0, 30.0), (0.6, 0.01)])
def test_the_automatic_step_is_round_and_goes_sixty_times_into_the_longest_time(longest, step):
    y = survival_target(np.ones(120), np.linspace(longest / 2, longest, 120))
    shown = party(shuffle=False).fit(X, y).share(ANCHOR).target["time"]
    assert_allclose(shown, np.ceil(y["time"] / step - 1e-9) * step)


@pytest.mark.parametrize("step", [0.0, -1.0, np.inf, np.nan, "month"])
def test_steps_that_are_none_are_refused(step):
    with pytest.raises(ValueError, match="time_step must be 'auto', a number above 0"):
        party(time_step=step).fit(X, TARGETS["survival"])


@pytest.mark.parametrize("kind", TARGETS)
def test_groups_are_of_one_treatment_or_of_all_rows_and_targets_stay(kind):
    y = TARGETS[kind]
    share, order = party(defences=[Microaggregation(5)]).fit(X, y).share_with_order(ANCHOR)
    _, groups, sizes = np.unique(share.representation, axis=0, return_inverse=True, return_counts=True)
    assert sizes.min() >= 5
    if y is None:
        return
    for name in set(y.dtype.names) - {"time"}:
        assert_array_equal(share.target[name], y[name][order])
    own = [groups.ravel() == g for g in range(len(sizes))]
    mixed = {name: any(len(set(share.target[name][each])) > 1 for each in own) for name in y.dtype.names}
    assert not mixed.get("treatment", False)
    assert mixed.get("event", True)


def test_groups_by_event_where_it_is_said():
    share = party(defences=[Microaggregation(4, by="event")]).fit(X, TARGETS["survival"]).share(ANCHOR)
    for row in np.unique(share.representation, axis=0):
        assert len(set(share.target["event"][(share.representation == row).all(axis=1)])) == 1


def test_groups_by_features_alone_keep_classes_apart_no_longer():
    classes = np.arange(120) % 3
    share = party(defences=[Microaggregation(5, by=None)]).fit(X, classes).share(ANCHOR)
    first = (share.representation == share.representation[0]).all(axis=1)
    assert len(set(share.target[first])) > 1
    assert sorted(share.target) == sorted(classes)


@pytest.mark.parametrize("by", ["outcome", "time"])
def test_groups_by_outcome_cannot_be_asked_for(by):
    with pytest.raises(ObfuscationError, match=f"groups by {by} would make rows of like outcomes alike"):
        party(defences=[Microaggregation(5, by=by)]).fit(X, TARGETS["effect"])


@pytest.mark.parametrize(("by", "kind"), [("treatment", "survival"), ("event", "effect"), ("target", "survival")])
def test_groups_by_what_is_not_there_are_refused(by, kind):
    with pytest.raises(ObfuscationError, match=f"of kind '{kind}' cannot be grouped by '{by}'"):
        party(defences=[Microaggregation(5, by=by)]).fit(X, TARGETS[kind])


def test_rows_are_known_again_with_their_targets():
    fitted = party().fit(X, TARGETS["survival"])
    assert fitted.was_fitted_on(X, TARGETS["survival"])
    assert not fitted.was_fitted_on(X, survival_target(EVENT, TIME + 1))


def test_an_analyst_refuses_what_no_model_is_trained_on():
    shares = {kind: dc.Party(kind, dc.obfuscator("pca", 3)).fit(X, y).share(ANCHOR) for kind, y in TARGETS.items()}
    for kind, message in (
        ("effect", "estimate_effect"),
        ("survival-effect", "estimate_effect"),
        ("none", "no targets"),
    ):
        with pytest.raises(AgreementError, match=message):
            dc.Analyst().fit([shares[kind]])
    with pytest.raises(AgreementError, match="Name both"):
        dc.Analyst().fit([shares["survival"]])
    with pytest.raises(AgreementError, match="different kinds"):
        dc.Analyst().fit([shares["survival"], shares["none"]])


def _rewritten(tmp_path, change):
    """A share of times to events, its arrays changed by somebody who can write the format."""
    from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
    from datacollab.share import SHARE_KIND, share_contents

    facts, members = share_contents(party().fit(X, TARGETS["survival"]).share(ANCHOR))
    arrays = dict(bytes_to_arrays(members["share.safetensors"], what="it"))
    change(facts, arrays)
    from datacollab.bundle import pack

    path = tmp_path / "hostile.dcshare"
    path.write_bytes(pack(SHARE_KIND, facts, {"share.safetensors": arrays_to_bytes(arrays)}))
    return path


HOSTILE = {
    "kind": lambda facts, arrays: facts.update(target={"kind": "single"}),
    "kind no text": lambda facts, arrays: facts.update(target={"kind": ["survival"]}),
    "more facts": lambda facts, arrays: facts.update(target={"kind": "survival", "dtype": "int64"}),
    "another kind": lambda facts, arrays: facts.update(target={"kind": "none"}),
    "no time": lambda facts, arrays: arrays.pop("time"),
    "one more": lambda facts, arrays: arrays.update(treatment=np.zeros(120, dtype=np.int64)),
    "half an anchor": lambda facts, arrays: arrays.update(anchor_time=np.ones(60)),
    "short": lambda facts, arrays: arrays.update(time=np.ones(119)),
    "table": lambda facts, arrays: arrays.update(time=np.ones((120, 1))),
    "single precision": lambda facts, arrays: arrays.update(time=np.ones(120, dtype=np.float32)),
    "numbers for events": lambda facts, arrays: arrays.update(event=np.ones(120)),
    "not a number": lambda facts, arrays: arrays.update(time=np.full(120, np.nan)),
    "before the start": lambda facts, arrays: arrays.update(time=-np.ones(120)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_targets_are_refused(name, tmp_path):
    with pytest.raises(ExchangeError) as refused:
        dc.Share.load(_rewritten(tmp_path, HOSTILE[name]))
    assert refused.value.code == "SHARE_MALFORMED"


def test_the_unchanged_share_is_read(tmp_path):
    assert dc.Share.load(_rewritten(tmp_path, lambda facts, arrays: None)).target_kind is TargetKind.SURVIVAL


@pytest.mark.parametrize("target", NAMED, ids=["survival", "effect", "survival-effect"])
def test_a_share_refuses_entries_without_meaning(target):
    field = "time" if "time" in target.dtype.names else "treatment"
    wrong = target.copy()
    wrong[field] = -1
    with pytest.raises(ShareError, match=f"Party 'a': target: {field} must be"):
        dc.Share(party="a", representation=X, anchor_representation=ANCHOR, target=wrong)
