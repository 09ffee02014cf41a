"""Tables as notebooks have them, at every entry point that takes rows: one table in any container gives one result."""

import datetime
import itertools
import warnings
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import all_estimators

import datacollab as dc
from datacollab.choice import Option
from datacollab.errors import (
    AgreementError,
    DataCollabError,
    DataCollabWarning,
    ExchangeError,
    ObfuscationError,
    SmallClassWarning,
    UnsendableWarning,
)
from datacollab.model import SENDABLE, unsendable_part
from datacollab.party import Microaggregation, PersonalModel
from datacollab.study import CategoryColumn, Description, NumberColumn, StudyPlan
from datacollab.sums import MaskKey
from datacollab.targets import check_coding, survival_target

N, N_PUBLIC, SECRET = 90, 30, "Frankenthal"
WARDS = ["medicine", SECRET, "surgery"]


def mixed(n=N + N_PUBLIC, seed=0):
    """Return a table with numbers, whole numbers, truth values, texts and gaps in all but one column."""
    rng = np.random.default_rng(seed)
    age, glucose = rng.uniform(20, 90, n).round(1), rng.normal(6, 1, n)
    table = pd.DataFrame(
        {
            "age": age,
            "glucose": np.where(rng.uniform(size=n) < 0.1, np.nan, glucose),
            "visits": rng.integers(0, 9, n),
            "smoker": rng.uniform(size=n) < 0.4,
            "ward": [None if rng.uniform() < 0.1 else WARDS[k] for k in rng.integers(3, size=n)],
        }
    )
    sick = (age + 20 * table["smoker"] + 10 * rng.normal(size=n)) > 62
    # The common map takes the columns of a frame in this order, and those of an array as they come.
    return table[sorted(table.columns)], sick.to_numpy()


TABLE, SICK = mixed()
HOSPITAL = np.repeat(["a", "b", "c"], N // 3)


def arrow_typed(table):
    return pa.Table.from_pandas(table, preserve_index=False).to_pandas(types_mapper=pd.ArrowDtype)


CONTAINERS = {
    "pandas": lambda table: table,
    "categories": lambda table: table.assign(ward=table["ward"].astype("category")),
    "nullable": lambda table: table.convert_dtypes(),
    "arrow types": arrow_typed,
    "objects": lambda table: table.astype(object).where(table.notna(), None),
    "polars": lambda table: pl.from_arrow(pa.Table.from_pandas(table, preserve_index=False)),
    "arrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
    "array": lambda table: table.astype(object).where(table.notna(), None).to_numpy(),
    "masked": lambda table: np.ma.masked_array(
        table.astype(object).where(table.notna(), "filler").to_numpy(), table.isna().to_numpy()
    ),
}


def parts(container):
    make = CONTAINERS[container]
    return make(TABLE[:N].reset_index(drop=True)), make(TABLE[N:].reset_index(drop=True))


def first(table, n):
    return table.slice(0, n) if isinstance(table, pa.Table) else table[:n]


def quietly(function, *given, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.errors.DataCollabWarning)
        return function(*given, **named)


def party_of(own, anchor, f=None, **options):
    f = dc.obfuscator("pca", 4) if f is None else f
    return quietly(dc.Party("a", f, random_state=0, **options).fit, own, SICK[:N])


def by_party(own, anchor):
    party = party_of(own, anchor)
    share = party.share(anchor)
    assert share.representation.shape == (N, 4)
    return np.vstack([share.representation, party.obfuscate(first(own, 3))])


def by_party_on_anchor(own, anchor):
    party = party_of(own, anchor, fit_on=anchor, defences=[Microaggregation(3)])
    return party.share(anchor).representation


def by_common_space(own, anchor):
    return dc.CommonSpace(anchor, bytes(32), n_components=8).transform(own)


def anchors(sampler):
    def draw(own, anchor):
        rows, target = sampler.sample(anchor, SICK[N:], random_state=0)
        assert (target is None) == isinstance(sampler, dc.GaussianAnchor | dc.UniformAnchor)
        assert type(rows) is (np.ndarray if isinstance(anchor, np.ma.MaskedArray) else type_of(anchor))
        # The anchor is a table of the same kind: whatever takes the one takes the other.
        return dc.CommonSpace(anchor, bytes(32)).encode(rows)

    return draw


def type_of(table):
    return pd.DataFrame if isinstance(table, pa.Table) else type(table)


def by_audit(own, anchor):
    party = party_of(own, anchor)
    found = quietly(
        dc.audit,
        party,
        own,
        anchor,
        public=anchor,
        levels=["T2"],
        attacks=["linear regression"],
        random_state=0,
        n_attacked=30,
    )
    assert found.findings
    return np.array([each.value for each in found.findings])


def by_choose(own, anchor):
    option = Option(name="pca", obfuscator=dc.obfuscator("pca", 3), n_components=3)
    choice = dc.choose(own, SICK[:N], anchor, options=[option], cv=2, random_state=0)
    assert not choice.failed
    return np.array([choice.assessments[0].utility])


def by_simulation(own, anchor):
    found = dc.simulate_parties(own, SICK[:N], anchor=anchor, n_parties=3, n_draws=2, random_state=0)
    return found.scores


def by_sums(own, anchor):
    model = dc.DataCollaborationClassifier(random_state=0).fit(own, SICK[:N], groups=HOSPITAL, anchor=anchor)
    return model.predict_proba(first(own, 9))


def by_rows(own, anchor):
    model = dc.DataCollaborationClassifier(
        dc.obfuscator("pca", 4), dc.LTI(4), LogisticRegression(), shuffle=False, random_state=0
    )
    model = clone(model).fit(own, SICK[:N], groups=HOSPITAL, anchor=anchor)
    return model.predict_proba(first(own, 9), groups=HOSPITAL[:9])


def by_cross_validation(own, anchor):
    pipeline = make_pipeline(FunctionTransformer(), dc.DataCollaborationClassifier(random_state=0))
    with config_context(enable_metadata_routing=True):
        params = {"groups": HOSPITAL, "anchor": anchor}
        found = cross_validate(
            pipeline, own, SICK[:N], cv=dc.PartyStratifiedKFold(2), params=params, error_score="raise"
        )
    return found["test_score"]


def by_clusterer(own, anchor):
    model = dc.DataCollaborationClusterer(dc.obfuscator("pca", 3), n_clusters=2, random_state=0, shuffle=False)
    return model.fit_predict(own, groups=HOSPITAL, anchor=anchor)


def by_survival(own, anchor):
    y = survival_target(SICK[:N], np.arange(1, N + 1) % 40 + 1)
    model = dc.DataCollaborationSurvival(dc.obfuscator("pca", 3), random_state=0, shuffle=False)
    return model.fit(own, y, groups=HOSPITAL, anchor=anchor).predict(first(own, 5), groups=HOSPITAL[:5])


def by_search_of_private_rows(own, anchor):
    assert not len(dc.find_private_rows(anchor, own))
    return dc.find_private_rows(first(own, 5), own)


TAKEN = {
    "Party": by_party,
    "Party on the anchor": by_party_on_anchor,
    "CommonSpace": by_common_space,
    "SampleAnchor": anchors(dc.SampleAnchor(20)),
    "SMOTEAnchor": anchors(dc.SMOTEAnchor(20)),
    "GaussianAnchor": anchors(dc.GaussianAnchor(20)),
    "UniformAnchor": anchors(dc.UniformAnchor(20)),
    "audit": by_audit,
    "choose": by_choose,
    "simulate_parties": by_simulation,
    "sums": by_sums,
    "rows": by_rows,
    "cross_validate": by_cross_validation,
    "clusters": by_clusterer,
    "survival": by_survival,
    "find_private_rows": by_search_of_private_rows,
}
EXPECTED = {}
SLOW = {"simulate_parties", "choose", "cross_validate", "survival", "clusters"}
FEW = {*SLOW, "audit", "rows", "sums", "GaussianAnchor", "UniformAnchor", "SampleAnchor"}
"""Entry points that are tried with the two containers that differ most."""
CASES = [
    *(
        pytest.param(entry, "nullable", "masked", marks=[pytest.mark.slow] if entry in SLOW else [])
        for entry in TAKEN
        if entry in FEW
    ),
    *((entry, "pandas", container) for entry in TAKEN if entry not in FEW for container in CONTAINERS),
]


@pytest.mark.parametrize(("entry", "reference", "container"), CASES, ids=lambda each: each)
def test_one_table_in_any_container_gives_one_result(entry, reference, container):
    if entry not in EXPECTED:
        EXPECTED[entry] = TAKEN[entry](*parts(reference))
    assert_allclose(TAKEN[entry](*parts(container)), EXPECTED[entry], rtol=1e-6, atol=1e-9)


# What is refused, by name and never by entry.

REFUSED = {
    "dates": (TABLE.assign(seen=pd.Timestamp("2031-05-04")), "column 'seen' holds dates.*such as an age in years"),
    "days": (TABLE.assign(seen=datetime.date(2031, 5, 4)), "column 'seen' holds dates"),
    "a word among numbers": (
        TABLE.assign(dose=np.array([20.31, "2031", *[0.5] * (len(TABLE) - 2)], dtype=object)),
        "column 'dose' holds numbers with decimals, and texts",
    ),
    "lists": (TABLE.assign(seen=[[2031]] * len(TABLE)), "column 'seen' holds lists"),
    "infinity": (TABLE.assign(dose=[np.inf, *range(1, len(TABLE))]), "column 'dose' holds infinity in 1 of"),
    "doubled names": (pd.concat([TABLE, TABLE[["age"]]], axis=1), r"1 names for several columns each: \['age'\]"),
    "levels of names": (TABLE.set_axis(pd.MultiIndex.from_product([["2031"], TABLE]), axis=1), "several levels"),
    "query": (pl.DataFrame({"age": [2031.0] * len(TABLE)}).lazy(), r"Call \.collect\(\)"),
    "records": (np.array([(2031.0, 1)] * len(TABLE), dtype=[("a", float), ("b", int)]), "array of records"),
    "complex": (np.full((len(TABLE), 2), 2031j), "Complex data not supported"),
}
DOORS = {
    "Party": lambda table: dc.Party("a", dc.obfuscator("pca", 2)).fit(table, SICK),
    "CommonSpace": lambda table: dc.CommonSpace(table, bytes(32)),
    "SMOTEAnchor": lambda table: dc.SMOTEAnchor(20).sample(table),
    "classifier": lambda table: dc.DataCollaborationClassifier().fit(
        table, SICK, groups=np.arange(len(SICK)) % 3, anchor=table
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_table_of_numbers_and_categories_is_refused_at_every_door(door, case):
    table, message = REFUSED[case]
    with pytest.raises((DataCollabError, ValueError), match=message) as caught:
        DOORS[door](table)
    assert "2031" not in str(caught.value)


@pytest.mark.parametrize("y", [np.ma.masked_array(SICK, TABLE["age"] > 80), pd.array(SICK).astype("boolean")])
def test_gaps_in_targets_are_counted(y):
    if not isinstance(y, np.ma.MaskedArray):
        y[TABLE["age"] > 80] = pd.NA
    n = int((TABLE["age"] > 80).sum())
    with pytest.raises(AgreementError, match=f"{n} of {len(TABLE)} entries of y are missing"):
        dc.Party("a", dc.obfuscator("pca", 2)).fit(TABLE, y)
    with pytest.raises(AgreementError, match=f"y is missing in {n} of"):
        dc.DataCollaborationClassifier().fit(TABLE, y, groups=np.arange(len(SICK)) % 3, anchor=TABLE)


YES = np.where(SICK, "yes", "no")
CODINGS = {
    "capitals": ([YES, np.char.capitalize(YES), YES], r"Parties \['a', 'b', 'c'\] spell 2 of the classes"),
    "blanks": ([YES, np.char.add(" ", YES), YES], "spell 2 of the classes"),
    "numbers": ([SICK * 1, SICK * 1, SICK + 1], r"Parties \['a', 'b'\] count their 2 classes from 0.*\['c'\] from 1"),
    "texts beside numbers": ([YES, SICK * 1, YES], r"'b': 'numbers'"),
}


@pytest.mark.parametrize("sharing", ["sums", "rows", "roles"])
@pytest.mark.parametrize("case", CODINGS)
def test_classes_coded_in_different_ways_are_refused_with_the_parties(case, sharing):
    codings, message = CODINGS[case]
    rows = np.array_split(np.arange(N), 3)
    targets = [coding[:N][own] for coding, own in zip(codings, rows, strict=True)]
    with pytest.raises(AgreementError, match=message) as caught:
        if sharing == "roles":
            f = dc.obfuscator("pca", 2)
            parties = [dc.Party("abc"[k], f).fit(TABLE.iloc[rows[k]], targets[k]) for k in range(3)]
            dc.Analyst(dc.LTI(2), LogisticRegression()).fit([party.share(TABLE[N:]) for party in parties])
        y = np.concatenate([target.astype(object) for target in targets])
        dc.DataCollaborationClassifier(sharing=sharing).fit(TABLE[:N], y, groups=HOSPITAL, anchor=TABLE[N:])
    assert "yes" not in str(caught.value).casefold()


def test_classes_that_no_other_party_has_are_warned_of():
    targets = {"a": ["no", "yes"], "b": ["ja", "nein"], "c": ["no", "yes", "unclear"]}
    with pytest.warns(DataCollabWarning, match=r"Parties \['b'\] have no class in common with any other") as caught:
        check_coding({party: np.array(labels) for party, labels in targets.items()})
    assert "ja" not in str(caught[0].message)


@pytest.mark.parametrize(
    "targets", [{"a": ["A", "a", "b"], "b": ["a", "b"]}, {"a": [0, 1], "b": [1, 2], "c": [0, 2]}, {"a": [0], "b": [1]}]
)
def test_classes_that_differ_are_no_codings(targets):
    check_coding({party: np.array(labels) for party, labels in targets.items()})


def test_names_are_no_classes_and_small_classes_a_warning():
    names = np.array([f"{SECRET} {k}" for k in range(N)])
    with pytest.raises(AgreementError, match=f"Party 'a': y has {N} different texts in {N} rows") as caught:
        dc.Party("a", dc.obfuscator("pca", 2)).fit(TABLE[:N], names)
    assert SECRET not in str(caught.value)
    with pytest.raises(AgreementError, match="names rather than classes"):
        dc.DataCollaborationClassifier().fit(TABLE[:N], names, groups=HOSPITAL, anchor=TABLE[N:])
    few = np.where(np.arange(N) < 4, "rare", YES[:N])
    with pytest.warns(SmallClassWarning, match="1 of 3 classes in Party 'a': y have fewer than 5 rows"):
        dc.Party("a", dc.obfuscator("pca", 2)).fit(TABLE[:N], few)


@pytest.mark.slow
def test_what_a_party_has_in_the_end_is_saved_and_read_on_a_mixed_frame(tmp_path, monkeypatch):
    for name in ("N_TREES", "MOST_REFITS"):
        monkeypatch.setattr(f"datacollab.own._personal_model.{name}", 4)
    rows, f = np.array_split(np.arange(N), 3), dc.obfuscator("pca", 3)
    parties = [dc.Party("abc"[k], f).fit(TABLE.iloc[rows[k]], YES[:N][rows[k]]) for k in range(3)]
    shares = [party.share(TABLE[N:]) for party in parties]
    h = make_pipeline(StandardScaler(), LogisticRegression())
    collaboration = dc.Analyst(dc.LTI(3), h, left_out=True).fit(shares)
    own = TABLE.iloc[rows[0]].convert_dtypes()
    model = parties[0].personalise(
        collaboration.party_model("a"), TABLE.iloc[rows[0]], YES[:N][rows[0]], public=TABLE[N:], random_state=0
    )
    model.save(tmp_path / "a.dcstate")
    read = PersonalModel.load(tmp_path / "a.dcstate")
    assert read.sides == model.sides
    for side in model.sides:
        assert_allclose(read.predict_proba(own, side), model.predict_proba(own, side), atol=1e-9)
    assert read.benefit_ == model.benefit_
    with pytest.raises(ExchangeError, match="Expected|expected"):
        PersonalModel.load(shares[0].save(tmp_path / "b.dcshare") or tmp_path / "b.dcshare")


STUDY = {
    "columns": lambda table: {name: table[name] for name in table},
    "masked columns": lambda table: {
        name: np.ma.masked_array(
            table[name].where(table[name].notna(), table[name].iloc[0]).to_numpy(), table[name].isna()
        )
        for name in table
    },
    **{name: make for name, make in CONTAINERS.items() if name not in ("array", "masked")},
}


@pytest.mark.parametrize("container", STUDY)
def test_a_study_takes_a_table_in_any_container(container):
    columns = [NumberColumn("age", 0, 120), NumberColumn("glucose", 0, 20), CategoryColumn("ward", WARDS)]
    keys = {name: MaskKey.generate() for name in "abc"}
    plan = StudyPlan({name: key.public for name, key in keys.items()}, [Description(columns)])
    sums = [plan.finish(plan.add_up(make(TABLE), bytes(32))) for make in (STUDY["columns"], STUDY[container])]
    assert_allclose(sums[1], sums[0], atol=1e-9)
    with pytest.raises(AgreementError, match="lacks column 'age'"):
        plan.add_up(pl.DataFrame({"ward": WARDS}), bytes(32))


@pytest.mark.parametrize(
    ("h", "part"),
    [
        (KNeighborsClassifier(), "KNeighborsClassifier"),
        (make_pipeline(Normalizer(), LogisticRegression()), "Normalizer"),
        (GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0]}), "SVC"),
        (CalibratedClassifierCV(VotingClassifier([("a", GaussianNB()), ("b", SVC())])), "SVC"),
    ],
)
def test_what_cannot_be_sent_is_known_before_the_fit(h, part):
    with pytest.warns(UnsendableWarning, match=f"A {part} cannot be sent"), pytest.raises(AgreementError):
        dc.Analyst(dc.LTI(2), h).fit([])


def test_what_can_be_sent_needs_no_warning():
    made = [*all_estimators("classifier"), *all_estimators("regressor")]
    kinds = [kind for name, kind in made if name in SENDABLE and "estimators" not in signature(kind).parameters]
    assert len(kinds) > 40
    assert {unsendable_part(kind()) for kind in kinds if "regressor" not in signature(kind).parameters} == {None}


# What a script on real tables stumbled over.

SEX = pd.Series(np.where(np.arange(len(TABLE)) % 2, "m", "w"))
SEXED = TABLE.assign(sex=SEX)
PUBLIC = SEXED[N:]


def test_categories_are_found_but_for_capital_letters_and_blanks():
    space = dc.CommonSpace(PUBLIC, bytes(32))
    found = space.transform(SEXED[:N].assign(sex=" " + SEX[:N].str.upper()))
    assert_array_equal(found, space.transform(SEXED[:N]))


@pytest.mark.parametrize("coded", [SEX.replace("w", "f"), SEX == "m", SEX.where(SEX.index % 15 > 0, SECRET)])
def test_unknown_categories_are_refused_with_their_number(coded):
    own, n = SEXED[:N].assign(sex=coded[:N]), int((~coded[:N].isin(["m", "w"])).sum())
    with pytest.raises(AgreementError, match=f"'sex' holds unknown categories in {n} of {N} rows") as caught:
        dc.CommonSpace(PUBLIC, bytes(32)).transform(own)
    assert SECRET not in str(caught.value)


def test_what_becomes_of_unknown_categories_is_an_option_without_misspellings():
    own = SEXED[:N].assign(sex="x")
    with pytest.warns(dc.errors.DataCollabWarning, match=f"unknown categories in {N} of {N} rows"):
        warned = dc.CommonSpace(PUBLIC, bytes(32), unknown="warn").transform(own)
    assert_array_equal(dc.CommonSpace(PUBLIC, bytes(32), unknown="allow").transform(own), warned)
    with pytest.raises(ValueError, match="unknown must be 'refuse', 'warn' or 'allow'; got 'Refuse'"):
        dc.CommonSpace(PUBLIC, bytes(32), unknown="Refuse")


def test_few_unknown_categories_are_zeros_and_those_of_an_own_map_a_warning():
    space, few = dc.CommonSpace(PUBLIC, bytes(32)), SEXED[:N].assign(sex=SEX[:N].where(SEX[:N].index > 3, "x"))
    assert np.isfinite(space.transform(few)).all()
    with pytest.warns(dc.errors.DataCollabWarning, match="Party 'a': the table: column 'sex' holds unknown"):
        dc.Party("a", dc.obfuscator("pca", 2)).fit(SEXED[:N], SICK[:N]).share(PUBLIC.assign(sex="f"))


def apart(one, other):
    """How far the witnesses of two common maps are apart, in units of the map."""
    found = (one.witness(bytes(32)) - other.witness(bytes(32))).view(np.int64)
    return 1e-12 * np.abs(found.astype(float)).max()


def test_the_common_map_and_its_witness_are_the_same_for_every_order_of_columns():
    names = ["sex", *TABLE.columns[::-1]]
    first, second = (dc.CommonSpace(each, bytes(32)) for each in (PUBLIC, PUBLIC[names].iloc[::-1]))
    assert_allclose(second.transform(SEXED[:N]), first.transform(SEXED[:N]), atol=1e-9)
    assert_allclose(
        dc.CommonSpace(PUBLIC[names], bytes(32)).transform(SEXED[:N]), first.transform(SEXED[:N]), rtol=0, atol=1e-12
    )
    assert apart(first, second) < 1e-10


@pytest.mark.slow
def test_a_witness_differs_by_secret_entry_level_gap_and_column():
    number = TABLE.columns[0]
    changed = [PUBLIC.copy() for _ in range(3)]
    changed[0].loc[PUBLIC.index[0], number] = 3.25
    changed[1].loc[PUBLIC.index[0], "sex"] = "x"
    changed[2].loc[PUBLIC.index[0], "sex"] = None
    changed.append(PUBLIC.rename(columns={"sex": "male"}))
    spaces = [dc.CommonSpace(each, bytes(32)) for each in (PUBLIC, *changed)]
    spaces += [dc.CommonSpace(PUBLIC, b"1" * 32), dc.CommonSpace(PUBLIC, bytes(32), n_components=4)]
    assert min(apart(*pair) for pair in itertools.combinations(spaces, 2)) > 1e-9
    numbers = PUBLIC[[number]].to_numpy(dtype=float)
    nearly = np.nextafter(numbers, np.inf)
    assert apart(dc.CommonSpace(numbers, bytes(32)), dc.CommonSpace(nearly, bytes(32))) < 1e-10


@pytest.mark.parametrize(
    "wrong", [(PUBLIC, b"1" * 32), (PUBLIC.assign(sex=PUBLIC["sex"].replace("w", "f")), bytes(32))]
)
def test_a_sum_over_two_maps_is_refused_by_the_name_of_the_party(wrong):
    spaces = {name: dc.CommonSpace(PUBLIC, bytes(32)) for name in "ab"} | {"c": dc.CommonSpace(*wrong)}
    keys = {name: dc.MaskKey.generate() for name in spaces}
    roster = {name: key.public for name, key in keys.items()}
    plan = dc.SumsPlan(roster, n_components=5, classes=[0, 1])
    v, y = np.eye(5), [0, 1, 0, 1, 0]
    context = plan.agreed.context
    messages = [plan.message(name, v, y, keys[name], witness=space.witness(context)) for name, space in spaces.items()]
    with pytest.raises(AgreementError, match=r"common maps of \['c'\]"):
        plan.solve(messages)


@pytest.mark.parametrize("baseline", [dc.Local, dc.Central])
def test_baselines_encode_mixed_frames_and_give_probabilities(baseline):
    y = np.array(["no", "some", "yes"])[SICK[:N] * 2]
    y[: N // 3][::4] = "some"
    model = baseline(LogisticRegression(max_iter=500)).fit(SEXED[:N], y, groups=HOSPITAL)
    found = model.predict_proba(SEXED[:N], groups=HOSPITAL)
    assert_allclose(found.sum(axis=1), 1)
    assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(SEXED[:N], groups=HOSPITAL))
    if baseline is dc.Local:
        assert_array_equal(found[N // 3 :, 1], 0)
    assert not hasattr(baseline(SVC()), "predict_proba")
    folds = dc.PartyStratifiedKFold(2, party_column="hospital")
    table, scored = SEXED[:N].assign(hospital=HOSPITAL), baseline(LogisticRegression(), party_column="hospital")
    assert np.isfinite(cross_validate(scored, table, SICK[:N], cv=folds, scoring="roc_auc")["test_score"]).all()


@pytest.mark.parametrize("coding", [["no", "yes"], [0, 1], [False, True], [1.5, 2.5]])
def test_sums_take_an_anchor_that_is_labelled_in_part(coding):
    is_number = coding == [1.5, 2.5]
    kind = dc.DataCollaborationRegressor if is_number else dc.DataCollaborationClassifier
    y, has = np.array(coding)[SICK.astype(int)], np.arange(N_PUBLIC) % 3 > 0
    known = pd.Series(y[N:]).astype(object).where(has, None)
    fitted = kind(random_state=0).fit(TABLE[:N], y[:N], groups=HOSPITAL, anchor=TABLE[N:], anchor_target=known)
    assert round(fitted.sums_.model.fit.n_rows) == pytest.approx(N + has.sum(), abs=5)
    whole = kind(random_state=0).fit(TABLE[:N], y[:N], groups=HOSPITAL, anchor=TABLE[N:])
    assert_array_equal(fitted.sums_.space.anchor, whole.sums_.space.anchor)


def test_columns_that_one_side_lacks_are_refused_before_the_fit():
    model = dc.DataCollaborationClassifier()
    with pytest.raises(AgreementError, match=r"lacks 1 columns: \['died'\].*the anchor, has them. Drop them there"):
        model.fit(TABLE[:N], SICK[:N], groups=HOSPITAL, anchor=TABLE[N:].assign(died="no"))
    with pytest.raises(AgreementError, match=r"X has 1 columns that the anchor lacks: \['id'\]"):
        model.fit(TABLE[:N].assign(id=np.arange(N)), SICK[:N], groups=HOSPITAL, anchor=TABLE[N:])


def test_columns_in_another_spelling_are_named():
    """Names look alike in two forms of Unicode."""
    public, own = (TABLE.rename(columns={TABLE.columns[0]: name}) for name in ("Größe", "Gro\u0308ße"))
    model = dc.DataCollaborationClassifier()
    with pytest.raises(AgreementError, match=r"There is 'Größe' for 'Gro\u0308ße' \(another form of Unicode: rename"):
        model.fit(own[:N], SICK[:N], groups=HOSPITAL, anchor=public[N:])
    with pytest.raises(AgreementError, match=r"There is 'größe ' for 'Größe'\. Leave"):
        model.fit(public[:N], SICK[:N], groups=HOSPITAL, anchor=public[N:].rename(columns={"Größe": "größe "}))
    numbered, texts = (pd.DataFrame(TABLE.to_numpy(), columns=names) for names in (range(5), map(str, range(5))))
    with pytest.raises(AgreementError, match=r"There is '0' for 0, '1' for 1, '2' for 2, '3' for 3, '4' for 4\."):
        model.fit(numbered[:N], SICK[:N], groups=HOSPITAL, anchor=texts[N:])
    party = dc.Party("a", dc.obfuscator("pca", n_components=2)).fit(public[:N], SICK[:N])
    with pytest.raises((ObfuscationError, AgreementError), match="another form of Unicode"):
        party.share(own[N:])


def test_raw_rows_and_decimal_commas_are_named():
    model = dc.DataCollaborationClassifier().fit(TABLE[:N], SICK[:N], groups=HOSPITAL, anchor=TABLE[N:])
    with pytest.raises(AgreementError, match=r"shape \(n_rows, \d+\); got shape \(3, 5\).*CommonSpace.transform"):
        model.sums_.model.predict(TABLE[:3])
    with pytest.raises(AgreementError, match="column 'age' holds texts.*decimal=','"):
        model.predict(TABLE[:9].assign(age="2,5"))


@pytest.mark.slow
def test_a_simulation_takes_an_anchor_labelled_in_part_and_shows_no_arrays():
    known = pd.Series(SICK[N:]).astype(object).where(np.arange(N_PUBLIC) % 3 > 0, None)
    options = {"anchor_target": known, "n_parties": 3, "n_draws": 2, "random_state": 0}
    found = dc.simulate_parties(TABLE[:N], SICK[:N], anchor=TABLE[N:], **options)
    assert repr(found) == "PartySimulation(metrics=('AUC', 'log loss'), settings=((3, 20),), n_draws=2)"
