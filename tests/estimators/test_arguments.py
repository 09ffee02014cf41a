"""Arguments beside one table and its targets: tables of several parties, anchors, their targets, and new categories."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler

import datacollab as dc
from datacollab.errors import AnchorError, DataCollabWarning, ObfuscationError
from datacollab.estimators import DataCollaborationClusterer
from datacollab.targets import survival_target

RANDOM = np.random.default_rng(0)
N, N_PUBLIC = 120, 60
X = RANDOM.normal(size=(N + N_PUBLIC, 3))
SICK = X[:, 0] + RANDOM.normal(0, 0.3, N + N_PUBLIC) > 0
Y, NUMBERS = np.where(SICK, "yes", "no"), np.exp(3 + X[:, 0])
HOSPITAL = np.resize(["east", "north", "west"], N)
OWN = {"groups": HOSPITAL, "anchor": X[N:]}
SECRET = "Ashdown-Vale"

pytestmark = pytest.mark.usefixtures("light_choices")


def classifier(**options):
    return dc.DataCollaborationClassifier(random_state=0, **options)


def regressor(**options):
    return dc.DataCollaborationRegressor(random_state=0, **options)


@pytest.fixture(scope="module")
def expected():
    """Probabilities of the public rows, by one array of all parties' rows."""
    return classifier().fit(X[:N], Y[:N], **OWN).predict_proba(X[N:])


# New categories


def with_places(frame, n_new):
    """A table whose parties' rows have towns and streets that no public row has."""
    town, street = RANDOM.choice(["Ayr", "Bath"], N + N_PUBLIC), RANDOM.choice(["High", "Low"], N + N_PUBLIC)
    town, street = town.astype(object), street.astype(object)
    town[:n_new], street[5 : 5 + n_new] = SECRET, SECRET
    return frame({"age": X[:, 0], "town": town, "street": street})


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda columns: pl.DataFrame(columns, strict=False)])
@pytest.mark.parametrize(("model", "y", "n_new"), [(classifier(), Y, 30), (regressor(), NUMBERS, N - 5)])
def test_new_categories_go_through_with_one_warning(frame, model, y, n_new):
    table = with_places(frame, n_new)
    words = rf"'street' holds unknown categories in {n_new} of {N} rows, column 'town' holds .* {n_new} of {N} rows"
    for act in (
        lambda: model.fit(table[:N], y[:N], groups=HOSPITAL, anchor=table[N:]),
        lambda: model.predict(table[:N]),
    ):
        with pytest.warns(DataCollabWarning, match=words) as caught:
            act()
        (said,) = [str(each.message) for each in caught]
        assert "to an anchor, public ones" in said
        assert SECRET not in said


# Narrow tables


def narrow(n_columns, kind):
    columns = {f"n{place}": RANDOM.normal(size=N + N_PUBLIC) for place in range(n_columns)}
    if kind != "numbers":
        columns["n0"] = np.where(SICK, "u", RANDOM.choice(["v", "w"], N + N_PUBLIC))
    if kind == "categories":
        columns |= {name: RANDOM.choice(["u", "v", "w"], N + N_PUBLIC) for name in list(columns)[1:]}
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("n_columns", "kind"),
    [*((n, "numbers") for n in (1, 2, 9)), (5, "both"), (9, "both"), (1, "categories"), (2, "categories")],
)
@pytest.mark.nightly
def test_defaults_take_narrow_tables(n_columns, kind):
    """Tables of 1 to 11 columns as numbers; a map has 10 by default."""
    table = narrow(n_columns, kind)
    event = survival_target(np.ones(N, dtype=bool), RANDOM.exponential(size=N))
    models = [
        (classifier(sharing="rows", estimator=LogisticRegression()), Y[:N]),
        (regressor(sharing="rows", estimator=LinearRegression()), NUMBERS[:N]),
    ]
    models += [(dc.DataCollaborationSurvival(random_state=0), event), (DataCollaborationClusterer(n_clusters=2), None)]
    for model, y in models:
        model.fit(table[:N], y, groups=HOSPITAL, anchor=table[N:])
        assert model.predict(table[:4], groups=HOSPITAL[:4]).shape == (4,)


@pytest.mark.parametrize(
    "name", ["pca", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("kernel-pca", "random-projection"))]
)
@pytest.mark.parametrize("integrator", [dc.KTI(), dc.LTI(), dc.GEP(), "auto"], ids=str)
def test_defaults_of_maps_and_methods_take_narrow_tables(name, integrator):
    table = narrow(1, "categories")
    classifier(obfuscator=dc.obfuscator(name), integrator=integrator, estimator=LogisticRegression()).fit(
        table[:N], Y[:N], groups=HOSPITAL, anchor=table[N:]
    )


@pytest.mark.parametrize("frame", [X, pd.DataFrame(X).rename(columns=str).assign(ward=np.resize(["u", None], len(X)))])
def test_numbers_of_components_that_are_given_and_impossible_are_refused(frame):
    """Gaps and categories, which are filled and encoded, are not blamed."""
    given = {"groups": HOSPITAL, "anchor": frame[N:]}
    with pytest.raises(
        ObfuscationError, match=r"n_components=10 is more than its 40 rows or [35] columns allow"
    ) as caught:
        classifier(obfuscator=dc.obfuscator("pca", 10)).fit(frame[:N], Y[:N], **given)
    assert "missing" not in str(caught.value)
    assert "do not hold numbers" not in str(caught.value)
    with pytest.raises(ValueError, match="n_components=10 is more than the data allow: at most 4"):
        classifier(integrator=dc.LTI(10)).fit(X[:N], Y[:N], **OWN)


def test_a_party_does_not_lower_the_components_of_a_linear_map():
    """With all columns it would hide nothing."""
    with pytest.raises(ObfuscationError, match="n_components=10 is more than"):
        dc.Party("east", dc.obfuscator("pca")).fit(X)


# Shapes

SHAPES = st.sampled_from([(), (0,), (N_PUBLIC - 1,), (N_PUBLIC + 1,), (N,), (N_PUBLIC, 2), (1, N_PUBLIC), (2, 2, 2)])
RAGGED = [[1.0], [1.0, 2.0]]


@pytest.mark.parametrize("door", ["classes", "numbers", "rows", "simulation"])
@settings(max_examples=5)
@given(shape=SHAPES)
def test_targets_of_the_anchor_in_another_shape_are_named(door, shape):
    wrong = {"anchor": X[N:], "anchor_target": np.ones(shape)}
    with pytest.raises(ValueError, match="anchor_target") as caught:
        if door == "simulation":
            dc.simulate_parties(X[:N], NUMBERS[:N], **wrong)
        else:
            model = classifier() if door == "classes" else regressor(sharing="rows" if door == "rows" else None)
            model.fit(X[:N], (Y if door == "classes" else NUMBERS)[:N], groups=HOSPITAL, **wrong)
    assert str(shape) in str(caught.value)
    assert str((N_PUBLIC,)) in str(caught.value)


@settings(max_examples=8)
@given(
    shape=st.sampled_from([(), (0,), (N - 1,), (N, 2), (1, N)]),
    model=st.sampled_from([classifier(), regressor(sharing="rows")]),
)
def test_owners_in_another_shape_are_named(shape, model):
    with pytest.raises(ValueError, match="groups") as caught:
        model.fit(X[:N], NUMBERS[:N] > 20, groups=np.zeros(shape), anchor=X[N:])
    assert str(shape) in str(caught.value)
    assert str((N,)) in str(caught.value)


@settings(max_examples=8)
@given(
    shape=st.sampled_from([(), (5,), (0, 3), (N_PUBLIC, 2), (N_PUBLIC, 4), (2, 2, 3)]),
    model=st.sampled_from([regressor(), regressor(sharing="rows"), DataCollaborationClusterer()]),
)
def test_anchors_in_another_shape_are_named(shape, model):
    with pytest.raises(AnchorError, match="anchor") as caught:
        model.fit(X[:N], NUMBERS[:N], groups=HOSPITAL, anchor=np.zeros(shape))
    assert str(shape) in str(caught.value)
    assert str((N, 3)) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("groups", RAGGED), ("groups", 3), ("groups", {"east": 3}), ("anchor_target", RAGGED), ("anchor_target", "yes"),
     ("anchor", "rows"), ("anchor", RAGGED), ("anchor", (X[N:], Y[N:])), ("anchor", {"east": X[N:]}),
     ("anchor", pd.DataFrame(X[N:]))],
    ids=str,
)  # fmt: skip
def test_arguments_of_another_type_are_named(name, wrong):
    with pytest.raises(ValueError, match=f"(?i){name}"):
        classifier().fit(X[:N], Y[:N], **(OWN | {name: wrong}))


@pytest.mark.parametrize("wrong", [X[N:, 0], 3, RAGGED, X[None], "rows"], ids=str)
def test_a_common_space_names_its_anchor(wrong):
    with pytest.raises(ValueError, match="The anchor"):
        dc.CommonSpace(wrong, bytes(32))


# Targets that were changed, and those of the anchor not


@pytest.mark.parametrize("y", [Y, np.digitize(X[:, 0], [-0.5, 0.5]) + 1], ids=["texts", "numbers"])
@pytest.mark.parametrize(
    "around",
    [
        lambda model: VotingClassifier([("d", model)]),
        lambda model: StackingClassifier([("d", model)], cv=2),
        OneVsRestClassifier,
        lambda model: model,
    ],
    ids=["voting", "stacking", "one against the rest", "encoded by hand"],
)
def test_classes_that_were_encoded_outside_are_noticed(around, y):
    model = around(classifier())
    given = LabelEncoder().fit_transform(y) if isinstance(model, dc.DataCollaborationClassifier) else y
    words = r"anchor_target has \d classes \(.*LabelEncoder.*outermost"
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ValueError, match=words) as caught:
        model.fit(X[:N], given[:N], **OWN, anchor_target=y[N:])
    assert "yes" not in str(caught.value)


@pytest.mark.parametrize("labels", [Y[N:], np.where(np.arange(N_PUBLIC) % 2, Y[N:], None), np.full(N_PUBLIC, None)])
def test_classes_of_y_are_taken(labels):
    classifier().fit(X[:N], Y[:N], **OWN, anchor_target=labels)


@pytest.mark.parametrize(
    "change",
    [
        {"func": np.log, "inverse_func": np.exp},
        {"transformer": StandardScaler()},
        {"func": np.square, "inverse_func": np.sqrt},
    ],
)
@pytest.mark.filterwarnings("ignore::datacollab.errors.HeavyTailWarning")
def test_numbers_that_were_transformed_outside_are_noticed(change):
    with sklearn.config_context(enable_metadata_routing=True):
        model = TransformedTargetRegressor(regressor(), check_inverse=False, **change)
        with pytest.warns(UserWarning, match="lies outside the range of .* TransformedTargetRegressor"):
            model.fit(X[:N], NUMBERS[:N], **OWN, anchor_target=NUMBERS[N:])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::datacollab.errors.HeavyTailWarning")
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), tail=st.sampled_from([0.0, 1.0, 3.0]), n_labelled=st.integers(0, N_PUBLIC))
def test_numbers_of_one_distribution_are_no_reason_to_warn(seed, tail, n_labelled):
    y = np.exp(tail * np.random.default_rng(seed).normal(size=N + N_PUBLIC))
    labels = np.where(np.arange(N_PUBLIC) < n_labelled, y[N:], np.nan)
    regressor().fit(X[:N], y[:N], **OWN, anchor_target=labels)


# Anchors that cross-validation cuts, and those it does not


def score(model, anchor, **options):
    params = {"groups": HOSPITAL, "anchor": anchor}
    return cross_val_score(model, X[:N], Y[:N], params=params, cv=StratifiedKFold(2), error_score="raise", **options)


WHOLE, TO_BE_CUT = X[N : N + N // 2], np.vstack([X[N:], X[N:]])
WAYS = {
    "scores": score,
    "predictions": lambda model, anchor: cross_val_predict(
        model, X[:N], Y[:N], params={"groups": HOSPITAL, "anchor": anchor}, cv=2
    ),
    "search": lambda model, anchor: GridSearchCV(model, {"epsilon": [None]}, cv=2).fit(
        X[:N], Y[:N], groups=HOSPITAL, anchor=anchor
    ),
    "pipeline": lambda model, anchor: score(
        Pipeline([("scale", StandardScaler()), ("fit", model)], transform_input=["anchor"]), anchor
    ),
    "frames": lambda model, anchor: cross_val_score(
        model, pl.DataFrame(X[:N]), Y[:N], params={"groups": HOSPITAL, "anchor": pl.DataFrame(anchor)}, cv=2
    ),
}


@pytest.mark.parametrize("way", ["scores", *(pytest.param(way, marks=pytest.mark.nightly) for way in list(WAYS)[1:])])
@pytest.mark.slow
def test_an_anchor_is_said_to_be_cut_where_it_was_and_only_there(way):
    """Both anchors have as many rows as X when they arrive."""
    assert len(WHOLE) == N // 2
    assert len(TO_BE_CUT) == N
    with sklearn.config_context(enable_metadata_routing=True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            WAYS[way](classifier(), WHOLE)
        with pytest.warns(UserWarning, match=f"The anchor has lost rows: {N // 2} of {N} are left"):
            WAYS[way](classifier(), TO_BE_CUT)


# A table for each party

FORMS = {
    "pandas": lambda rows: pd.DataFrame(rows, columns=["a", "b", "c"]),
    "polars": lambda rows: pl.DataFrame(rows, schema=["a", "b", "c"]),
    "arrow": lambda rows: pa.table(pd.DataFrame(rows, columns=["a", "b", "c"])),
    "array": lambda rows: rows,
    "masked": np.ma.masked_array,
}
PARTIES = ["east", "north", "west"]


def apart(values, form=lambda rows: rows):
    return {party: form(values[:N][party == HOSPITAL]) for party in PARTIES}


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_parties_are_joined(form, expected):
    anchor = FORMS[form](X[N:])
    tables, targets = apart(X, FORMS[form]), apart(Y)
    named = classifier().fit(tables, targets, anchor=anchor)
    placed = classifier().fit(list(tables.values()), list(targets.values()), anchor=anchor)
    assert list(named.sums_.plan.roster) == PARTIES
    assert list(placed.sums_.plan.roster) == [0, 1, 2]
    for model in (named, placed):
        np.testing.assert_allclose(model.predict_proba(anchor), expected, atol=1e-9)


def test_all_kinds_of_targets_and_ways_take_tables_of_parties():
    events = survival_target(np.ones(N, dtype=bool), np.exp(X[:N, 0]))
    anchor, model = {"anchor": X[N:]}, classifier()
    assert dc.DataCollaborationSurvival().fit(apart(X), apart(events), **anchor).parties_.keys() == {*PARTIES}
    assert regressor(sharing="rows").fit(apart(X), apart(NUMBERS), **anchor).models_.keys() == {*PARTIES}
    assert DataCollaborationClusterer(n_clusters=2).fit_predict(apart(X), **anchor).shape == (N,)
    assert_array_equal(
        model.fit_transform(apart(X), apart(Y), **anchor), model.transform(np.vstack(list(apart(X).values())))
    )
    few = sparse.csr_array(np.maximum(X, 0))
    maps = {"obfuscator": dc.obfuscator("random-projection", 3), "estimator": LogisticRegression()}
    classifier(**maps, integrator=dc.LTI(3)).fit(apart(few), apart(Y), anchor=few[N:])


def test_columns_come_in_any_order_and_categories_stay():
    """Codes that are declared as categories are none in one party, and others in the next."""
    tables = apart(X, FORMS["pandas"])
    public = FORMS["pandas"](X[N:]).assign(code=pd.Categorical(np.resize([1, 2, 3], N_PUBLIC)))
    for place, (party, table) in enumerate(tables.items()):
        tables[party] = table.assign(code=pd.Categorical(np.resize([1, 2 + place % 2], len(table))))
    tables["west"] = tables["west"][["code", "c", "b", "a"]]
    model = classifier().fit(tables, apart(Y), anchor=public)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "code"]
    assert model.sums_.space.encode(tables["west"]).shape[1] == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": HOSPITAL}, "Leave out groups"),
        ({"party_column": "a"}, "party_column"),
        ({"y": apart(Y) | {"south": Y[:3]}}, "south"),
        ({"y": {party: apart(Y)[party] for party in PARTIES[:2]}}, "west"),
        ({"y": list(apart(Y).values())}, "in one form, a dict or a list"),
        ({"y": Y[:N]}, "in one form, a dict or a list"),
        ({"y": apart(Y) | {"west": Y[:3]}}, r"Party 'west': X has shape \(40, 3\), y \(3,\)"),
        ({"y": apart(Y) | {"west": RAGGED}}, "y of party 'west'"),
        ({"X": apart(X) | {"west": X[:40, :2]}, "anchor": X[N:]}, "X of party 'west' is a ndarray of 2 columns"),
        ({"X": apart(X) | {"west": FORMS["pandas"](X[:40])}}, "X of party 'west' is a DataFrame"),
        ({"X": apart(X, lambda rows: rows[:, 0])}, r"Party 'east': X has shape \(40,\)"),
        ({"X": {}, "y": {}}, "0 parties"),
        ({"X": {1.5: X[:N]}, "y": {1.5: Y[:N]}}, "texts or all integers"),
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_fit_together_is_named_by_party(change, words):
    given = {"X": apart(X), "y": apart(Y), "anchor": X[N:]} | change
    model = classifier(party_column=given.pop("party_column", None))
    with pytest.raises(ValueError, match=words):
        model.fit(given.pop("X"), given.pop("y"), **given)


def test_all_else_takes_one_table():
    model = classifier().fit(X[:N], Y[:N], **OWN)
    with pytest.raises(ValueError, match="X is a dict of 3 tables or columns; expected one table"):
        model.predict(apart(X))
    with pytest.raises(ValueError, match="X is a list of 3 tables or columns; expected one table"):
        dc.simulate_parties(list(apart(X).values()), list(apart(Y).values()))


@pytest.mark.parametrize(
    "rows", [X[:N].tolist(), list(X[:N]), tuple(map(tuple, X[:N]))], ids=["lists", "arrays", "tuples"]
)
def test_a_list_of_rows_stays_a_table(rows, expected):
    model = classifier().fit(rows, Y[:N].tolist(), **OWN)
    np.testing.assert_allclose(model.predict_proba(X[N:]), expected)
