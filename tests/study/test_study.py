"""A study's first table and regression under masks, against pandas and statsmodels on all rows in one place."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from datacollab.errors import AgreementError, NumericalError
from datacollab.linalg import gaussian_sigma
from datacollab.study import (
    MAPPED,
    CategoryColumn,
    Counts,
    Description,
    Effect,
    LeastSquares,
    NumberColumn,
    Refused,
    StudyPlan,
    Survival,
    deal,
)
from datacollab.sums import MaskKey, RidgeSums

CLASSES = ("mild", "severe", "fatal")
COURSE = CategoryColumn("course", CLASSES)
ARM = CategoryColumn("arm", ("old", "new"))
AGE = NumberColumn("age", 0, 120)
DOSE = NumberColumn("dose", -1, 3)
COLUMNS = (AGE, DOSE, COURSE)


def table_of(n_rows, seed, *, gaps=0.1):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.normal(60, 15, n_rows).clip(0, 120),
            "dose": random.uniform(-1, 3, n_rows),
            "course": random.choice(CLASSES, n_rows, p=[0.5, 0.4, 0.1]).astype(object),
            "arm": random.choice(["old", "new"], n_rows).astype(object),
        }
    )
    frame["stay"] = (
        3 + 0.1 * frame["age"] - 2 * frame["dose"] + 4 * (frame["course"] == "fatal") + random.normal(0, 2, n_rows)
    ).clip(0, 40)
    for name in ("age", "course", "arm"):
        frame.loc[random.random(n_rows) < gaps, name] = None
    return frame


def dealt(frame, n_parties):
    """Deal rows to parties of unequal sizes."""
    ends = (np.linspace(0.0, 1.0, n_parties + 1) ** 1.5 * len(frame)).astype(int)
    return [frame.iloc[start:end].reset_index(drop=True) for start, end in itertools.pairwise(ends)]


def pooled(statistic, frames, **options):
    total = sum(statistic.part(frame) for frame in frames)
    return statistic.result(total, n_parties=len(frames), **options)


def new_keys(n_parties=3):
    return {f"party {place}": MaskKey(bytes([place]) * 32) for place in range(1, n_parties + 1)}


def roster_of(keys):
    return {name: key.public for name, key in keys.items()}


@given(st.lists(st.sampled_from([*CLASSES, None, math.nan]), min_size=1, max_size=30))
def test_counts_are_those_of_each_level(entries):
    found = pooled(Counts([COURSE]), [{"course": entries}])
    assert found.counts["course"] == pytest.approx({level: entries.count(level) for level in CLASSES})


def test_a_level_is_rare_unless_it_clearly_has_ten_rows():
    statistic = Counts([COURSE])
    noise = statistic.result(statistic.spread, n_parties=3, noise=1.5).noise_of_levels["course"]
    for beyond, rare in ((0.01, ()), (-0.01, (("course", "fatal"),))):
        ten, eleven = (statistic.part({"course": ["mild"] * 300 + ["severe"] * 99 + ["fatal"] * n}) for n in (10, 11))
        total = ten + (2 * noise + beyond) * (eleven - ten)
        assert statistic.result(total, n_parties=3, noise=1.5).rare == rare


@pytest.mark.slow
@pytest.mark.parametrize("statistic", [Counts([AGE, COURSE]), Description([AGE, COURSE], ARM)])
def test_noise_of_counts_is_as_said(statistic):
    """500 draws: of rows, of levels, of rows with an entry and of rows missing, overall and in groups."""
    random, found = np.random.default_rng(0), []
    for _ in range(500):
        drawn = 1.5 * statistic.spread * random.normal(size=len(statistic.spread))
        result = statistic.result(drawn, n_parties=3, noise=1.5)
        if isinstance(statistic, Counts):
            counts = [(n, result.noise_of_levels["course"]) for n in result.counts["course"].values()]
            found.append([*counts, *((n, result.noise) for n in result.bins["age"][:3]), result.size])
        else:
            counts = [(n, result.count_noise) for group, n in result.n_rows.items() if group is not None]
            found.append([*counts, *((each.n, each.noise_of_n) for each in result.entries), result.size])
    values, said = np.array(found).transpose(2, 0, 1)
    assert_allclose(np.std(values, axis=0), said[0], rtol=0.12)


@pytest.mark.slow
def test_noise_of_a_mean_and_of_differences_is_as_said():
    """400 draws of the noise; the mean is far from the middle of the range, where the noise of counts matters."""
    frames, random = dealt(table_of(300, 4), 3), np.random.default_rng(0)
    for frame in frames:
        frame["age"] /= 2
    described, counts = Description([AGE], ARM), Counts([AGE, COURSE])
    means, apart, said = [], [], []
    for statistic in (described, counts):
        total = sum(statistic.part(frame) for frame in frames)
        for _ in range(400):
            noisy = total + 1.5 * statistic.spread * random.normal(size=len(total))
            found = statistic.result(noisy, n_parties=3, noise=1.5)
            if statistic is described:
                means.append([(each.mean, each.noise_of_mean) for each in found.entries])
            else:
                apart.append([share for share, _ in found.between.values()])
                said.append([noise for _, noise in found.between.values()])
    values, noise = np.transpose(means)
    assert_allclose(np.std(values, axis=1), np.mean(noise, axis=1), rtol=0.12)
    assert (np.std(apart, axis=0) < 1.1 * np.mean(said, axis=0)).all()


@pytest.mark.parametrize("n_parties", [3, 5, 10])
def test_counts_say_how_much_of_the_variance_lies_between_parties(n_parties):
    frames = dealt(table_of(400, 8), n_parties)
    frames[0]["course"] = frames[0]["course"].replace("fatal", "mild")
    frame = pd.concat(frames)
    found = pooled(Counts([*COLUMNS, ARM]), frames, noise=0.0)
    assert found.missing == {name: frame[name].isna().sum() for name in ("age", "dose", "course", "arm")}
    assert_allclose(found.bins["dose"], np.histogram(frame["dose"], 10, (-1, 3))[0], atol=1e-9)
    assert found.size == (len(frame), 0.0)
    assert len(found.between) == 2 + 2 + 1
    for (name, level), (share, noise) in found.between.items():
        values = [frame[name].dropna() if level is None else frame[name].dropna() == level for frame in frames]
        pairs = [(each.mean(), len(each)) for each in values]
        mean = np.average([mean for mean, _ in pairs], weights=[n for _, n in pairs])
        between = sum(n * (each - mean) ** 2 for each, n in pairs)
        assert share == pytest.approx(between / np.var(np.concatenate(values)) / sum(n for _, n in pairs), abs=1e-9)
        assert noise == 0.0


def test_another_unit_and_swapped_levels_are_named_and_honest_differences_are_not():
    """One of five hospitals; the others' means differ by half a standard deviation."""
    random, frames = np.random.default_rng(0), []
    for place in range(5):
        shift = (0.0, 0.5, 0.0, -0.5, 0.5)[place]
        frame = pd.DataFrame({"age": random.normal(60 + 15 * shift, 15, 300), "dose": random.normal(0.3, 0.1, 300)})
        frame["arm"] = random.choice(["old", "new"], 300, p=[0.85, 0.15])
        frames.append(frame)
    columns = [AGE, DOSE, CategoryColumn("arm", ("old", "new", "none"))]
    assert pooled(Counts(columns), frames, noise=1.7).unlike == ()
    frames[0]["dose"] *= 10
    frames[1]["arm"] = frames[1]["arm"].map({"old": "new", "new": "old"})
    found = pooled(Counts(columns), frames, noise=1.7)
    assert found.unlike == ("dose", "arm")
    unit, code = found.cautions
    assert unit.startswith("'dose': ")
    assert "another unit" in unit
    assert code.startswith("'arm': ")
    assert "another code" in code
    rows = {row[:2]: row[4] for row in found.table().rows}
    assert float(rows["dose", "-1 to 3"]) > 0.3
    assert rows["arm", "none"] == "", "noise decides about a level without rows"


@pytest.mark.parametrize("n_parties", [3, 5, 10])
@pytest.mark.parametrize("by", [None, ARM])
def test_a_description_is_that_of_all_rows_in_one_place(n_parties, by):
    frame = table_of(400, 0)
    frames = dealt(frame, n_parties)
    frames[0]["course"] = frames[0]["course"].replace("fatal", "mild")  # A party without a level.
    frame = pd.concat(frames)
    found = pooled(Description(COLUMNS, by), frames)
    groups = {None: frame} | ({} if by is None else {level: frame[frame["arm"] == level] for level in ARM.levels})
    assert found.n_rows == {group: len(rows) for group, rows in groups.items()}
    for each in found.entries:
        entries = groups[each.group][each.column]
        assert each.missing == entries.isna().sum()
        if each.level is not None:
            assert each.n == pytest.approx((entries == each.level).sum(), abs=1e-9)
            assert each.share == pytest.approx((entries == each.level).sum() / entries.notna().sum(), rel=1e-12)
            continue
        assert each.n == entries.notna().sum()
        assert each.mean == pytest.approx(entries.mean(), rel=1e-10)
        assert each.deviation == pytest.approx(entries.std(), rel=1e-8)
        bin_width = 120 / 20 if each.column == "age" else 4 / 20
        assert_allclose(each.quarters, entries.quantile([0.25, 0.5, 0.75]), atol=bin_width)


def test_a_first_table_has_a_column_for_each_group():
    frame = table_of(400, 0)
    frame["course"] = frame["course"].fillna("mild")
    heads, rows, note, bars, noise = pooled(Description([AGE, COURSE], ARM), [frame]).article_table()
    assert heads == ("column", "", "all", "old", "new")
    new = frame[frame["arm"] == "new"]
    share = 100 * (new["course"] == "fatal").mean()
    found = {row[:2]: row[2:] for row in rows}
    assert found["rows", ""] == ("400", str((frame["arm"] == "old").sum()), str(len(new)))
    assert found["age", "mean (sd)"][2] == f"{new['age'].mean():.4g} ({new['age'].std():.4g})"
    assert found["course", "fatal"][2] == f"{(new['course'] == 'fatal').sum()} ({share:.1f} %)"
    assert found["age", "missing"][0] == str(frame["age"].isna().sum())
    assert ("course", "missing") not in found
    assert {row for row, _ in bars} == {3}
    assert {column for _, column in bars} == {2, 3, 4}
    assert_allclose(bars[3, 4], np.histogram(new["age"].dropna(), 20, (0, 120))[0], atol=1e-9)
    assert noise == pytest.approx(2 * math.sqrt(3)), "that of all rows, which are two groups and those without one"
    assert "2.0 rows or more" in note


def test_a_deviation_that_noise_decides_is_left_out():
    found = pooled(Description([NumberColumn("x", 0, 1000)]), [{"x": [499.0, 501.0] * 20}], noise=1.0)
    assert math.isnan(found.entries[0].deviation)
    assert found.article_table().rows[1][2] == "500 (–)"


def test_quarters_lie_where_counts_in_bins_put_them():
    found = pooled(Description([NumberColumn("x", 0, 4)], n_bins=4), [{"x": [0.5] * 2 + [1.5] * 4 + [2.5, 3.5]}])
    assert found.entries[0].quarters == pytest.approx((1.0, 1.5, 2.0))


def tables():
    yield "diabetes", load_diabetes(as_frame=True, scaled=False).frame, "target", ("age", "bmi", "bp", "s5")
    yield "wine", load_wine(as_frame=True).frame, "proline", ("alcohol", "hue", "ash", "flavanoids")
    yield "cancer", load_breast_cancer(as_frame=True).frame, "mean area", ("mean texture", "mean smoothness", "target")


@pytest.mark.parametrize("n_parties", [3, 5, 10])
@pytest.mark.parametrize(("frame", "outcome", "names"), [pytest.param(*each, id=name) for name, *each in tables()])
def test_least_squares_is_that_of_all_rows_with_dummies_of_parties(n_parties, frame, outcome, names):
    # The largest of three parties then has fewer than 200 rows, which are one block.
    frame = frame.sample(frac=1, random_state=0).iloc[:430]
    frame["doctor"] = np.random.default_rng(1).integers(0, 12, len(frame))
    columns = [NumberColumn(name, frame[name].min() - 1, frame[name].max() + 3) for name in names]
    target = NumberColumn(outcome, frame[outcome].min(), frame[outcome].max())
    _check_regression(target, columns, dealt(frame, n_parties), lambda rows: rows[list(names)])


def test_levels_and_gaps():
    """Levels are compared with the first one; rows with a gap are left out; one party lacks a level."""
    frames = dealt(table_of(432, 1).assign(doctor=[*"abcdefghi"] * 48), 3)
    frames[1]["course"] = frames[1]["course"].replace("fatal", "mild")
    found = _check_regression(
        NumberColumn("stay", 0, 40),
        [*COLUMNS, ARM],
        frames,
        lambda rows: np.column_stack(
            [rows["age"], rows["dose"], rows["course"] == "severe", rows["course"] == "fatal", rows["arm"] == "new"]
        ),
    )
    assert found.names == ("age", "dose", "course=severe", "course=fatal", "arm=new")


def _check_regression(outcome, columns, frames, design_of):
    """All kinds of errors are those of statsmodels; parties deal their rows by secrets of their own."""
    names = [column.name for column in columns]
    for errors, cluster in (("classical", None), ("robust", None), ("robust", "doctor")):
        statistic = LeastSquares(outcome, columns, errors=errors, cluster=cluster)
        dealing = [bytes([1, place]) * 16 for place in range(len(frames))]
        both = [*zip(frames, dealing, strict=True)]
        found = statistic.result(sum(itertools.starmap(statistic.part, both)), n_parties=len(frames), noise=0.0)
        complete = [each.dropna(subset=names) for each in frames]
        rows, party = pd.concat(complete), np.repeat(np.arange(len(frames)), [*map(len, complete)])
        design = np.asarray(design_of(rows), dtype=float)
        whole = np.column_stack([design, party[:, None] == np.arange(len(frames))]).astype(float)
        model, p = sm.OLS(rows[outcome.name].to_numpy(), whole), design.shape[1]
        fitted, df = model.fit(), model.df_resid
        covariance = fitted.cov_params()[:p, :p]
        if errors == "robust":
            compared, weights, residuals = _fit_differences(statistic, both, names, design_of)
            groups_as_equal = weights.sum() ** 2 / (weights**2).sum()
            df = groups_as_equal - 1
            kept = min(1, residuals / (fitted.ssr * weights.sum() / len(rows)))
            covariance = groups_as_equal / df * (len(rows) - 1) / model.df_resid / kept**2.3 * compared
            options = {"cov_type": "HC1"}
            if cluster is not None:
                doctors = [f"{place} {own}" for place, own in zip(party, rows[cluster], strict=True)]
                options = {"cov_type": "cluster", "cov_kwds": {"groups": np.unique(doctors, return_inverse=True)[1]}}
            # Ten groups tell errors with a standard deviation of a quarter.
            assert_allclose(np.log(found.errors / model.fit(**options).bse[:p]), 0, atol=0.9)
        assert found.n_rows == len(rows)
        assert_allclose(found.coefficients, fitted.params[:p], rtol=1e-8)
        assert_allclose(found.covariance, covariance, rtol=1e-7, atol=1e-12)
        assert_allclose(found.errors, np.sqrt(np.diag(covariance)), rtol=1e-8)
        assert_allclose(found.degrees_of_freedom, df, rtol=1e-10)
        half = stats.t.ppf(0.975, df) * found.errors
        assert_allclose([found.low, found.high], [found.coefficients - half, found.coefficients + half], rtol=1e-10)
        assert_allclose(found.p_values, 2 * stats.t.sf(abs(found.coefficients) / found.errors, df), rtol=1e-10)
        assert found.residual_deviation == pytest.approx(math.sqrt(fitted.scale), rel=1e-8)
        assert_allclose(found.noise_errors, 0.0)
    return found


def _fit_differences(statistic, dealt_rows, names, design_of):
    """Fit all differences within parties by statsmodels, clustered by the group of their first row.

    A difference weighs less if it is long, and all of a party less, the more rows the party has.  A row is in the
    differences of its own group, and in all others' as well: groups differ by half of what the coefficients need.
    Returned are the covariance, weights by group, and the weighted squares of residuals.
    """
    # A number adds 1/16 to the squared reach, two levels a quarter, and more levels a half.
    n_levels = [len(getattr(column, "levels", ())) for column in statistic.columns]
    reach = (5 + 1) / 16 + sum({0: 1 / 16, 2: 1 / 4}.get(n, 1 / 2) for n in n_levels)
    widths = [column.width if isinstance(column, NumberColumn) else 1.0 for column in statistic.columns]
    widths = np.repeat(widths, [len(column.coefficient_names) for column in statistic.columns])
    X, y, weights, groups = [], [], [], []
    for frame, secret in dealt_rows:
        assert len(frame) < 200, "all rows of a party are one block"
        labels = None if statistic.cluster is None else frame[statistic.cluster]
        rows = frame.assign(group=deal(len(frame), 10, secret, labels)).dropna(subset=names)
        x = np.asarray(design_of(rows), dtype=float)
        first, second = np.nonzero(~np.eye(len(rows), dtype=bool))
        X.append(x[first] - x[second])
        outcomes = rows[statistic.outcome.name].to_numpy()
        y.append(outcomes[first] - outcomes[second])
        far = ((X[-1] / widths) ** 2).sum(axis=1) + (y[-1] / statistic.outcome.width) ** 2
        weights.append(np.minimum(1, reach / np.maximum(far, 1e-12)) / len(frame))
        groups.append(rows["group"].to_numpy()[first])
    X, y, weights, groups = map(np.concatenate, (X, y, weights, groups))
    fitted = sm.WLS(y, X, weights=weights).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    return 4 * np.asarray(fitted.cov_params()), np.bincount(groups, weights, 10), fitted.ssr / 2


def test_rows_are_compared_within_blocks_of_a_hundred():
    """Near rows add up to moments around the means of blocks: four of 450 rows, which take off about three rows."""
    random = np.random.default_rng(0)
    statistic = LeastSquares(NumberColumn("y", 0, 1), [NumberColumn("x", 0, 1)])
    parts = [statistic.part({"x": x, "y": y}) for x, y in random.uniform(0.4, 0.6, (40, 2, 450))]
    whole, groups = np.split(np.mean(parts, axis=0).reshape(11, 4), [1])
    assert 1 - groups.sum(axis=0)[1] / whole[0, 1] == pytest.approx(3 / 450, rel=0.3)


@pytest.mark.parametrize("options", [{}, {"errors": "classical"}])
def test_rows_of_a_level_are_told_with_the_noise_that_is_said(options):
    """By their squares in the moments of all rows and of groups, beside two hundred rows of another level."""
    statistic = LeastSquares(NumberColumn("y", 0, 1), [NumberColumn("x", 0, 1), ARM], **options)
    same = np.full(200, 0.5)
    arms = [["old"] * 200, ["new"] + ["old"] * 199]
    before, after = (statistic.part({"x": same, "y": same, "arm": each}, bytes(32)) for each in arms)
    # After the rows, moments of x, arm and y: the squares of arm are the fourth.
    moved = (after - before).reshape(-1, 7)[:, 4]
    reading = statistic.spread[4] / math.hypot(moved[0], moved[1:].sum())
    random = np.random.default_rng(0)
    rows = {"x": random.uniform(0, 1, 400), "y": random.uniform(0, 1, 400), "arm": ["old", "new"] * 200}
    found = statistic.result(statistic.part(rows, bytes(32)), n_parties=3, noise=0.01)
    assert found.noise_of_levels == pytest.approx(0.01 * reading / math.sqrt(3), rel=0.02)


def test_one_message_carries_several_statistics():
    frames, keys = dealt(table_of(3000, 2), 3), new_keys()
    statistics = [Counts([COURSE]), Description(COLUMNS, ARM), LeastSquares(NumberColumn("stay", 0, 40), COLUMNS)]
    plan = StudyPlan(roster_of(keys), statistics)
    parties = zip(keys.items(), frames, strict=True)
    results = plan.results([plan.message(name, frame, key) for (name, key), frame in parties])
    for statistic, found in zip(statistics, results, strict=True):
        assert type(found) is type(pooled(statistic, frames))
    counts, described, regression = results
    mild = pd.concat(frames)["course"].eq("mild").sum()
    assert counts.counts["course"]["mild"] == pytest.approx(mild, abs=8 * counts.noise_of_levels["course"])
    age = next(each for each in described.entries if each.column == "age" and each.group is None)
    assert age.mean == pytest.approx(pd.concat(frames)["age"].mean(), abs=8 * age.noise_of_mean + 1)
    exact = pooled(statistics[2], frames, noise=0.0)
    assert (np.abs(regression.coefficients - exact.coefficients) < 8 * regression.errors).all()
    assert (regression.noise_errors > 0).all()


@pytest.mark.parametrize("statistic", [Description(COLUMNS, ARM), LeastSquares(DOSE, [AGE, COURSE], cluster="arm")])
def test_batches_of_rows_add_up(statistic):
    frame = table_of(90, 3, gaps=0)
    batches = [frame.iloc[start : start + 40] for start in (0, 40, 80)]
    found = statistic.finish(sum(statistic.add_up(each, bytes(32)) for each in batches))
    whole = statistic.part(frame, bytes(32))
    if isinstance(statistic, LeastSquares):
        # In groups, rows are compared with those of their batch.
        found, whole, *parts = (
            each.reshape(11, -1) for each in (found, whole, *(statistic.part(each, bytes(32)) for each in batches))
        )
        assert_allclose(found[1:], sum(each[1:] for each in parts), rtol=1e-12, atol=1e-12)
        found, whole = found[0], whole[0]
    assert_allclose(found, whole, rtol=1e-12, atol=1e-12)


def test_what_was_agreed_on_decides_the_context():
    roster = roster_of(new_keys())
    plans = [
        StudyPlan(roster, [Counts([COURSE])]),
        StudyPlan(roster, [Counts([COURSE], count_noise=3.0)]),
        StudyPlan(roster, [Counts([ARM])]),
        StudyPlan(roster, [Counts([COURSE])], {"run": 2}),
        StudyPlan(roster, [Description([COURSE])]),
        StudyPlan(roster, [Description([COURSE], n_bins=10)]),
        StudyPlan(roster, [LeastSquares(AGE, [DOSE])]),
        StudyPlan(roster, [LeastSquares(DOSE, [AGE])]),
        StudyPlan(roster, [LeastSquares(DOSE, [AGE], errors="classical")]),
        StudyPlan(roster, [LeastSquares(DOSE, [AGE], cluster="arm")]),
    ]
    assert len({plan.agreed.context for plan in plans}) == len(plans)


# By name, with the part of its bound that a row reaches at least: see `test_the_bound_is_about_reached`.
STATISTICS = {
    "counts": (Counts([COURSE, ARM]), 0.95),
    "counts of numbers": (Counts([AGE, DOSE, COURSE, ARM]), 0.99),
    "description": (Description(COLUMNS), 0.99),
    "description by arm": (Description(COLUMNS, ARM), 0.95),
    "classical": (LeastSquares(DOSE, [AGE, COURSE], errors="classical"), 0.92),
    "robust": (LeastSquares(DOSE, [AGE, COURSE]), 0.82),
    "clusters": (LeastSquares(DOSE, [AGE, COURSE], cluster="arm"), 0.65),
    "many levels": (
        LeastSquares(DOSE, [AGE, COURSE, ARM, CategoryColumn("risk", range(5))], errors="classical"),
        0.92,
    ),
}
ROWS = st.fixed_dictionaries(
    {
        "age": st.sampled_from([0.0, 1.0, 119.0, 120.0, math.nan]),
        "dose": st.sampled_from([-1.0, 1.0, 3.0]),
        "course": st.sampled_from([*CLASSES, None]),
        "arm": st.sampled_from(["old", "new", None]),
        "risk": st.sampled_from(range(5)),
    }
)


@pytest.mark.parametrize("statistic", [each for each, _ in STATISTICS.values()], ids=STATISTICS)
@given(
    rows=st.lists(ROWS, min_size=1, max_size=4),
    other=ROWS,
    copies=st.sampled_from([1, 20]),
    secret=st.binary(min_size=32, max_size=32),
)
def test_no_row_moves_the_numbers_farther_than_said(statistic, rows, other, copies, secret):
    """In units of the noise, as a Gaussian mechanism counts."""
    rest = copies * rows[1:]
    first, second = (pd.DataFrame([one, *rest]).astype(object) for one in (rows[0], other))
    moved = (statistic.part(first, secret) - statistic.part(second, secret)) / statistic.spread
    assert np.linalg.norm(moved) <= statistic.loss * (1 + 1e-12)


@pytest.mark.parametrize("cluster", [None, "doctor"])
@pytest.mark.parametrize("n_rows", [2, 11, 99, 199])
def test_no_row_moves_robust_moments_of_a_block_farther_than_said(cluster, n_rows):
    """All others are alike, or at any corner; entries may be missing; of clusters, one has most rows.

    Moments of groups alone move as far as raises their noise above that of classical errors.  Numbers of rows and
    weights move as far as is left if there is hardly any other loss.
    """
    random = np.random.default_rng(n_rows)
    columns = [NumberColumn("x", 0, 1), CategoryColumn("arm", (0, 1)), CategoryColumn("ward", (0, 1, 2))]
    statistic = LeastSquares(NumberColumn("y", 0, 1), columns, cluster=cluster)
    ends = {"x": [0, 1], "y": [0, 1, np.nan], "arm": [0, 1], "ward": [0, 1, 2]}
    noise = statistic.spread[1]
    usual = LeastSquares(statistic.outcome, columns, errors="classical").spread[1]
    bound = RidgeSums(1, limits=(0.0, 1.0)).sensitivity / 0.1 * math.sqrt(noise**2 - usual**2)
    of_counts = replace(statistic, noise=1e9).loss
    farthest, of_groups, counted = 0.0, 0.0, 0.0
    for place in range(60):
        corners = {name: random.choice(values, n_rows + 1) for name, values in ends.items()}
        if place < 2:
            # Far from all others, at right angles to one another; or missing, and alike.
            first, second = [({"x": 1.0, "y": 1.0}, {"arm": 1, "ward": 1}), ({"y": np.nan}, {})][place]
            corners = {name: np.r_[first.get(name, 0), second.get(name, 0), np.zeros(n_rows - 1)] for name in ends}
        elif random.random() < 0.7:
            for values in corners.values():
                values[2:] = values[2]
        others = np.where((random.random(n_rows - 1) < 0.1) & (place > 1), 1, 0)
        corners["doctor"] = np.r_[random.integers(0, 9, 2) * (place > 1), others]
        tables = ({name: np.delete(values, k) for name, values in corners.items()} for k in (0, 1))
        first, second = (statistic.part(each, bytes(32)) / statistic.spread for each in tables)
        farthest = max(farthest, float(np.linalg.norm(first - second)))
        moved = (first - second).reshape(11, -1)
        of_groups = max(of_groups, noise * float(np.linalg.norm(moved[1:, 1:])))
        counted = max(counted, float(np.linalg.norm(moved[:, 0])))
    assert farthest <= statistic.loss * (1 + 1e-12)
    assert of_groups <= bound * (1 + 1e-12)
    assert counted <= of_counts * (1 + 1e-6)
    assert n_rows < 99 or (of_groups > 0.9 * bound and counted > 0.9 * of_counts)


@pytest.mark.parametrize(("statistic", "least"), STATISTICS.values(), ids=STATISTICS)
def test_the_bound_is_about_reached(statistic, least):
    """By a row that goes from one end to the other in every column, or whose course is missing, among many others.

    With robust errors, moments of all rows and of groups have bounds of their own: a block's rows may be unlike others.
    """
    rest = {"age": [0.0], "dose": [-1.0], "course": ["severe"], "arm": ["old"], "risk": [1]}
    farthest = 0.0
    for before, after, arm in (("severe", "fatal", "new"), ("severe", "fatal", "old"), (None, "fatal", "new")):
        one = rest | {"course": [before], "risk": [2]}
        other = {"age": [120.0], "dose": [3.0], "course": [after], "arm": [arm], "risk": [3]}
        first, second = ({name: 500 * rest[name] + row[name] for name in rest} for row in (one, other))
        moved = (statistic.part(first, bytes(32)) - statistic.part(second, bytes(32))) / statistic.spread
        farthest = max(farthest, float(np.linalg.norm(moved)))
    assert least * statistic.loss <= farthest * (1 + 1e-12) <= statistic.loss * (1 + 1e-11)


@pytest.mark.parametrize("statistic", [Counts([AGE]), Description([AGE], ARM), Description(COLUMNS, ARM)])
def test_the_only_person_of_a_group_is_hardly_read_from_counts_or_a_description(statistic):
    """By somebody who knows all other rows: the likeliest age, on average, beside guessing the mean."""
    random = np.random.default_rng(0)
    ages = np.linspace(0, 120, 49)
    alone = {"dose": [1.0], "course": ["mild"], "arm": ["new"]}
    totals = np.array([statistic.part({"age": [age], **alone}) / statistic.spread for age in ages])
    usual = np.exp(-(((ages - 60) / 20) ** 2) / 2)  # What the attacker knows of ages: a sixth of the range.
    true = random.choice(len(ages), 2000, p=usual / usual.sum())
    noisy = totals[true] + random.normal(size=(2000, totals.shape[1]))
    likely = usual * np.exp(noisy @ totals.T - (totals**2).sum(axis=1) / 2)
    guessed = (likely @ ages) / likely.sum(axis=1)
    error, known = np.sqrt(np.mean((guessed - ages[true]) ** 2)), np.std(ages[true])
    assert error > 0.75 * known


def test_epsilon_raises_the_noise_of_the_whole_message():
    roster = roster_of(new_keys())
    described = [STATISTICS[name][0] for name in ("description", "classical")]
    plan, plain = (StudyPlan(roster, described, epsilon=epsilon) for epsilon in (2.0, None))
    assert 1 / plan.loss == pytest.approx(gaussian_sigma(2.0, 1e-5))
    assert plan.noise_of_sums == pytest.approx(RidgeSums(1, limits=(0, 1)).noise_for(2.0))
    assert (plan.agreed.noise > plain.agreed.noise).all()
    counts, _ = STATISTICS["counts"]
    lax = StudyPlan(roster, [counts], epsilon=100.0)
    assert_array_equal(lax.agreed.noise, counts.spread)


@pytest.mark.nightly
@pytest.mark.parametrize(("errors", "noise"), [("classical", 3.0), ("robust", 1.0)])
def test_intervals_hold_with_the_noise_of_the_total(errors, noise):
    """200 draws of noise and residuals: 95 % intervals hold in 91 to 98 % of the coefficients."""
    random, held, parts = np.random.default_rng(5), [], []
    outcome, columns = NumberColumn("y", -10, 10), [NumberColumn("a", -3, 3), NumberColumn("b", -3, 3)]
    statistic = LeastSquares(outcome, columns, errors=errors)
    for _ in range(200):
        frames = []
        for site in range(4):
            a = random.normal(site / 2, 0.8, 100).clip(-3, 3)
            b = (0.5 * a + random.normal(0, 0.8, 100)).clip(-3, 3)
            spread = 0.4 if errors == "classical" else 0.2 + 0.8 * abs(a - site / 2)
            y = (site + a - 0.5 * b + random.normal(0, spread, 100)).clip(-10, 10)
            frames.append({"a": a, "b": b, "y": y})
        total = sum(statistic.part(frame, random.bytes(32)) for frame in frames)
        noisy = total + noise * statistic.spread * random.normal(size=len(total))
        found = statistic.result(noisy, n_parties=4, noise=noise)
        held += [low <= true <= high for low, true, high in zip(found.low, (1.0, -0.5), found.high, strict=True)]
        parts.append((found.noise_errors / found.errors) ** 2)
    assert np.median(parts) > 0.3, "the noise is no small part of the errors here"
    assert 0.91 <= np.mean(held) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize(("width", "most"), [(0.1, 1.1), (1.0, 1.3)])
def test_noise_of_the_totals_is_in_robust_errors_by_itself(width, most):
    """Without residuals the errors are those that noise alone has, as classical errors add them.

    They are a little larger if differences of rows are shortened, as in columns that fill their range.
    """
    random = np.random.default_rng(0)
    frames = [{name: random.uniform((1 - width) / 2, (1 + width) / 2, 4000) for name in "ab"} for _ in range(3)]
    for frame in frames:
        frame["y"] = 0.2 + 0.5 * frame["a"] - 0.2 * frame["b"]
    statistic = LeastSquares(NumberColumn("y", 0, 1), [NumberColumn("a", 0, 1), NumberColumn("b", 0, 1)], noise=1.0)
    total = sum(statistic.part(frame, random.bytes(32)) for frame in frames)
    spread = width**2 * statistic.spread
    noisy = (total + spread * random.normal(size=len(total)) for _ in range(400))
    found = [statistic.result(each, n_parties=3, noise=width**2) for each in noisy]
    squares = np.mean([each.errors**2 for each in found], axis=0)
    of_noise = np.mean([each.noise_errors**2 for each in found], axis=0)
    assert (squares > 0.9 * of_noise).all()
    assert (squares < most * of_noise).all()
    assert_allclose(of_noise, np.var([each.coefficients for each in found], axis=0), rtol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"noise": 0.03}, {"errors": "classical"}, {"errors": "classical", "noise": 0.03}]
)
def test_a_level_with_one_person_does_not_read_its_record(options):
    """The attackers know all rows but that one, take these from the total, and read the level's sums.

    Errors are those of three parties, one of which colludes, beside those of guessing the columns' means, and of all
    combined in the best way.
    """
    random, columns = np.random.default_rng(0), [NumberColumn(name, 0, 1) for name in "abcy"]
    statistic = LeastSquares(columns[3], [*columns[:3], COURSE], **options)
    excess, level, numbers = math.sqrt(3 / 2), statistic.names.index("course=fatal"), [0, 1, 2, len(statistic.names)]
    read, apart = [], []
    for _ in range(60):
        rows = pd.DataFrame(random.normal(0.5, 1 / 6, (200, 4)).clip(0, 1), columns=[*"abcy"])
        rows["course"] = ["fatal"] + 99 * ["mild"] + 100 * ["severe"]
        secret = random.bytes(32)
        total = statistic.part(rows, secret) + excess * statistic.spread * random.normal(size=len(statistic.spread))
        others = rows.iloc[1:]
        left = total - statistic.part(others, secret)
        read.append([M[level, numbers] for M in moments_in(statistic, left, np.eye(len(statistic.names) + 1)[level])])
        mean, person = others[[*"abcy"]].mean().to_numpy(), rows.loc[0, [*"abcy"]].to_numpy(dtype=float)
        apart.append(person - mean)
    check_readings(read, apart)
    with pytest.raises(NumericalError, match="course=fatal has fewer than 10 rows beyond noise"):
        statistic.result(total, n_parties=3, noise=excess)


def moments_in(statistic, numbers, direction):
    """The moments of all rows and, with robust errors, of all groups together and of the person's group.

    Nobody else has a part along this direction, so that attackers find the group in which it has the largest square.
    """
    size = len(statistic.names) + 1
    i, j = np.triu_indices(size)
    parts = numbers.reshape(-1, 1 + len(i))[:, 1:]
    found = np.zeros((len(parts), size, size))
    found[:, i, j] = found[:, j, i] = parts
    if len(parts) == 1:
        return found
    groups = found[1:]
    return np.array([found[0], groups.sum(axis=0), groups[np.argmax(direction @ groups @ direction)]])


def check_readings(read, apart):
    """No reading over all rows is better than guessing the mean, from which the person is so far `apart`.

    Nor is the best combination much better; with the person's group, that has half the error at least.
    """
    apart = np.ravel(apart)
    readings = np.array(read).transpose(0, 2, 1).reshape(len(apart), -1)
    of_guess = np.square(apart).mean()
    assert (np.square(readings - apart[:, None]).mean(axis=0)[:2] > of_guess).all()
    combined = readings @ np.linalg.lstsq(readings, apart, rcond=None)[0]
    least = 0.65 if readings.shape[1] == 1 else 0.5
    assert np.square(combined - apart).mean() > least**2 * of_guess


def nearly_the_same(random, n_apart, *, opposite=False):
    """300 rows whose new arm is at night, but for the first ones; or is never at night, but for them."""
    rows = pd.DataFrame(random.normal(0.5, 1 / 6, (300, 2)).clip(0, 1), columns=[*"xy"])
    rows["arm"] = random.choice(["old", "new"], 300)
    rows["ward"] = np.where((rows["arm"] == "new") ^ opposite, "night", random.choice(["day", "eve"], 300))
    rows.loc[: n_apart - 1, ["arm", "ward"]] = ["new", "night" if opposite else "day"]
    return rows


WARD = CategoryColumn("ward", ("day", "eve", "night"))
X, Y = NumberColumn("x", 0, 1), NumberColumn("y", 0, 1)


@pytest.mark.parametrize("opposite", [False, True])
def test_levels_that_one_person_holds_apart_are_refused_as_their_coefficients_tell_the_outcome(opposite):
    rows = nearly_the_same(np.random.default_rng(0), 1, opposite=opposite)
    design = np.column_stack([rows["x"], rows["arm"] == "new", rows["ward"] == "eve", rows["ward"] == "night"])
    if opposite:  # Who is never at night is in the day or in the evening.
        rows["ward"] = rows["ward"].replace("eve", "day")
        design = np.delete(design, 2, axis=1)
    fitted = sm.OLS(rows["y"].to_numpy(), sm.add_constant(design.astype(float))).fit()
    assert fitted.fittedvalues[0] == pytest.approx(rows["y"][0], abs=1e-9), "the attack: the coefficients' own answer"
    statistic = LeastSquares(Y, [X, ARM, CategoryColumn("ward", ("day", "night")) if opposite else WARD])
    with pytest.raises(NumericalError, match=r"arm=\w+ and ward=\w+ separate the same people but for fewer than 10"):
        pooled(statistic, [rows], noise=0.0)


def test_only_pairs_of_levels_that_ten_people_hold_apart_and_noise_lets_tell_are_given():
    random = np.random.default_rng(1)
    statistic = LeastSquares(Y, [X, ARM, WARD], errors="classical")
    for n_apart, noise, is_refused in ((7, 0.0, True), (11, 0.0, False), (11, 2.0, True), (40, 2.0, False)):
        total = statistic.part(nearly_the_same(random, n_apart))
        if is_refused:
            with pytest.raises(NumericalError, match="separate the same people"):
                statistic.result(total, n_parties=1, noise=noise)
        else:
            statistic.result(total, n_parties=1, noise=noise)


def test_one_person_in_a_cell_of_levels_that_are_otherwise_apart_stays_hidden():
    """No sum holds products of three columns: the person's outcome is as far from the model's answer as others'."""
    random, far = np.random.default_rng(2), []
    for _ in range(25):
        rows = nearly_the_same(random, 0)
        rows["arm"] = np.where(rows["ward"] == "night", "old", rows["arm"])
        rows.loc[:29, "arm"], rows.loc[0, "ward"] = "new", "night"
        rows.loc[1:29, "ward"] = "day"
        found = pooled(LeastSquares(Y, [X, ARM, WARD], errors="classical"), [rows], noise=0.0)
        levels = [rows["arm"] == "new", rows["ward"] == "eve", rows["ward"] == "night"]
        answers = found.coefficients @ np.array([rows["x"], *levels])
        off = rows["y"] - answers
        far.append(abs(off - off[1:].mean())[0])
    assert np.mean(far) > 0.7 * 0.8 / 6, "residuals have a deviation of a sixth"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"noise": 0.03}, {"errors": "classical", "noise": 0.03}])
def test_the_one_person_who_holds_levels_apart_is_not_read_from_the_total(options):
    """By attackers who know all other rows, from the difference of both levels' sums; three parties, one colludes."""
    random, excess = np.random.default_rng(0), math.sqrt(3 / 2)
    statistic = LeastSquares(Y, [X, ARM, WARD], **options)
    arm, night = map(statistic.names.index, ("arm=new", "ward=night"))
    read, apart = [], []
    for _ in range(40):
        rows, secret = nearly_the_same(random, 1), random.bytes(32)
        total = statistic.part(rows, secret) + excess * statistic.spread * random.normal(size=len(statistic.spread))
        apart_along = np.zeros(len(statistic.names) + 1)
        apart_along[[arm, night]] = 1, -1
        known = moments_in(statistic, total - statistic.part(rows.iloc[1:], secret), apart_along)
        mean, person = rows.loc[1:, [*"xy"]].mean().to_numpy(), rows.loc[0, [*"xy"]].to_numpy(dtype=float)
        # What the person adds to the moments of both levels, around the means, leaves the person's own numbers.
        read.append([(M[arm] - M[night])[[0, -1]] for M in known])
        apart.append(person - mean)
    check_readings(read, apart)
    with pytest.raises(NumericalError, match=r"separate the same people|noise"):
        statistic.result(total, n_parties=3, noise=excess)


def test_one_refused_statistic_leaves_the_others():
    keys, statistics = new_keys(), [Counts([ARM]), LeastSquares(NumberColumn("y", 0, 1), [NumberColumn("a", 0, 1)])]
    table = {"arm": ["old"] * 9, "a": [0.0] * 9, "y": [1.0] * 9}
    counts, refused = (plan := StudyPlan(roster_of(keys), statistics)).results(
        [plan.message(name, table, key) for name, key in keys.items()]
    )
    assert set(counts.counts["arm"]) == {"old", "new"}
    assert isinstance(refused, Refused)
    assert "hardly varies" in refused.table().rows[0][0]


@pytest.mark.parametrize(
    "table", [{"course": ["mild", "unknown"]}, {"course": ["mild"], "arm": ["old", "new"]}, {"arm": ["old"]}]
)
def test_tables_that_do_not_fit_are_refused_and_not_quoted(table):
    plan = StudyPlan(roster_of(new_keys()), [Counts([COURSE])])
    with pytest.raises(AgreementError) as caught:
        plan.add_up(table, bytes(32))
    assert "unknown" not in str(caught.value)


def test_texts_are_no_numbers():
    with pytest.raises(AgreementError, match="'age'") as caught:
        Description([AGE]).part({"age": [1.0, "secret"]})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("gap", [None, math.nan, pd.NA, pd.NaT])
def test_gaps_of_pandas_are_missing_entries(gap):
    entries = {"age": [20.0, gap], "arm": ["old", gap], "died": [1, gap], "month": [3.0, gap]}
    table = {name: np.array(each, dtype=object) for name, each in entries.items()}
    found = pooled(Counts([AGE, ARM, CategoryColumn("died", (0, 1))]), [table])
    assert found.missing == {"age": 1, "arm": 1, "died": 1}
    assert Survival(NumberColumn("month", 0, 12), "died").add_up(table, bytes(32)).tolist() == [[0.25, 1, 1]]


def test_a_description_names_rare_levels_and_groups():
    table = {"course": ["mild"] * 200 + ["severe"] * 100 + ["fatal"] * 8, "arm": ["old"] * 299 + ["new"] * 9}
    assert pooled(Description([COURSE]), [table], noise=0.0).rare == (("course", "fatal"),)
    assert pooled(Description([AGE], ARM), [table | {"age": [50.0] * 308}], noise=0.0).rare == (("arm", "new"),)


def test_dates_are_no_numbers():
    with pytest.raises(AgreementError, match="'age': an entry is no number"):
        Counts([AGE]).part({"age": pd.Series(pd.to_datetime(["2020-01-01", None]))})


@pytest.mark.parametrize(
    ("statistic", "few"),
    [(LeastSquares(DOSE, [AGE], cluster="doctor"), (1, 6)), (Effect(ARM, DOSE, 2, cluster="doctor"), (1, 3))],
    ids=["least squares", "effect"],
)
def test_few_clusters_of_a_party_never_stand_alone_in_a_group(statistic, few):
    random = np.random.default_rng(0)
    plan = StudyPlan(roster_of(keys := new_keys()), [statistic])
    table = {"age": random.uniform(0, 120, 500), "dose": random.uniform(-1, 3, 500), MAPPED: np.zeros((500, 2))}
    table["arm"] = random.choice(ARM.levels, 500)
    for n_clusters in few:
        with pytest.raises(AgreementError, match=r"'doctor' fill . of \d+ groups at this party"):
            plan.message("party 1", table | {"doctor": np.arange(500) % n_clusters}, keys["party 1"])
    plan.message("party 1", table | {"doctor": np.arange(500) % 40}, keys["party 1"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: CategoryColumn("x", ["a"]),
        lambda: CategoryColumn("x", ["a", "a"]),
        lambda: NumberColumn("x", 1, 1),
        lambda: NumberColumn("x", 0, math.inf),
        lambda: LeastSquares(AGE, []),
        lambda: LeastSquares(AGE, [AGE]),
        lambda: LeastSquares(AGE, [DOSE], errors="exact"),
        lambda: LeastSquares(AGE, [DOSE], errors="classical", cluster="arm"),
        lambda: StudyPlan(roster_of(new_keys()), []),
        lambda: StudyPlan(roster_of(new_keys()), [Counts([COURSE]), Counts([ARM])]),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(AgreementError):
        make()


def test_a_regression_that_noise_could_decide_is_refused():
    random = np.random.default_rng(0)
    a = random.uniform(0, 1, 200)
    frame = {"a": a, "b": a, "c": random.uniform(0, 1, 200), "flat": np.full(200, 0.4), "y": a}
    columns = [NumberColumn(name, 0, 1) for name in "ab"]
    more = [*columns, NumberColumn("c", 0, 1)]
    statistic = LeastSquares(NumberColumn("y", 0, 1), columns)
    with pytest.raises(NumericalError, match="noise 'a', 'b' hardly vary within parties, or nearly follow from each"):
        pooled(LeastSquares(statistic.outcome, more), [frame] * 3, noise=0.0)
    flat = [NumberColumn("c", 0, 1), NumberColumn("flat", 0, 1)]
    with pytest.raises(NumericalError, match="noise 'flat' hardly varies within parties, or nearly follows from other"):
        pooled(LeastSquares(statistic.outcome, flat), [frame] * 3, noise=0.0)
    few = {name: column[:5] for name, column in frame.items()}
    with pytest.raises(NumericalError, match="10 rows for each"):
        pooled(statistic, [few] * 3, noise=0.0)
    frame = {"a": a, "b": random.uniform(0, 1, 200), "y": a, "doctor": ["A"] * 200}
    with pytest.raises(NumericalError, match="of 10 groups"):
        pooled(LeastSquares(statistic.outcome, columns, cluster="doctor"), [frame] * 3, noise=0.0)
