"""One of five parties adds something else than its rows: what the analyst refuses, says, and cannot see.

All are files that a party with its own keys can write; the other four are honest.
"""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from datacollab.cli._app import app
from datacollab.sums import RidgeSums, message_to_bytes
from party_world import refused
from sums_world import PARTIES, ROWS, new_sums_world

KINDS = ("classification", "regression")
MOST = 80
HONEST, ONE = PARTIES[:-1], PARTIES[-1]


@pytest.fixture(scope="module", params=[(KINDS[0], MOST), (KINDS[1], MOST), (KINDS[0], None)], ids=str)
def shared(request, tmp_path_factory):
    """Four parties have shared; all agreed on the most rows of each, or nobody did."""
    kind, most = request.param
    sharing = {} if most is None else {"most_rows": dict.fromkeys(PARTIES, most)}
    world = new_sums_world(tmp_path_factory.mktemp("made-up"), kind, sharing=sharing)
    world.share_all(HONEST)
    world.most = most
    return world


def times(factor):
    return lambda statistic, part, flipped: factor * part


def flipped_times(factor):
    return lambda statistic, part, flipped: factor * flipped


def matrix_of(statistic, part):
    M = np.zeros((statistic.size, statistic.size))
    M[np.triu_indices(statistic.size)] = part
    return M


def products_times(factor):
    """Sums that are true but for products of columns and target."""

    def way(statistic, part, flipped):
        D, M = statistic.n_components, matrix_of(statistic, part)
        M[:D, D:-1] *= factor
        return M[np.triu_indices(statistic.size)]

    return way


def targets_times(factor):
    """Sums that are true but for the squares of targets."""

    def way(statistic, part, flipped):
        D, M = statistic.n_components, matrix_of(statistic, part)
        M[D:-1, D:-1] *= factor
        return M[np.triu_indices(statistic.size)]

    return way


def rows_times(factor):
    """Sums over rows of the common map that are so many times as long."""

    def way(statistic, part, flipped):
        D, M = statistic.n_components, matrix_of(statistic, part)
        M[:D] *= factor
        M[:D, :D] *= factor
        return M[np.triu_indices(statistic.size)]

    return way


def random(deviation):
    return lambda statistic, part, flipped: part + np.random.default_rng(0).normal(size=len(part)) * deviation


def integrated(world, way, root):
    """What comes of the total."""
    world = world.copied(root)
    folder, table = world.folder(ONE), pd.read_csv(world.table(ONE))
    other = table["ill"].map({"yes": "no", "no": "yes"}) if world.task == "classification" else -table["ill"]
    prepared, flipped = folder.prepare(table), folder.prepare(table.assign(ill=other)).part
    part = way(prepared.plan.ridge, prepared.part, flipped)
    message = prepared.plan.agreed.mask(ONE, part, prepared.mask_key, witness=prepared.witness)
    file = root / "made-up.dcsum"
    file.write_bytes(message_to_bytes(message, folder.key, world.project.analyst, outside=prepared.outside))
    world.analyst.add([*(root / name / "outbox" / f"{name}.dcsum" for name in HONEST), file])
    return world.analyst.integrate()


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (products_times(-20), "least eigenvalue .* rows give 0 at least"),
        (random(1), "least eigenvalue"),
        (random(5), "least eigenvalue|at least 100"),
        (times(-3), "least eigenvalue|at least 100"),
        (times(-20), "at least 100"),
        (targets_times(200), "targets are beyond their range"),
        (rows_times(10), "rows of the common map are longer than 1"),
    ],
    ids=["products -20", "random 1", "random 5", "-3 x", "-20 x", "targets 200", "rows 10"],
)
@pytest.mark.slow
def test_totals_that_no_table_has_are_refused(shared, way, words, tmp_path):
    with refused("SHARE_MALFORMED", words) as found:
        integrated(shared, way, tmp_path)
    assert "project 'wards'" in str(found.value)
    assert "nobody can tell who. Ask all of them" in str(found.value)
    assert not set(PARTIES) & set(re.findall(r"\w+", str(found.value)))


@pytest.mark.parametrize("way", [flipped_times(10), flipped_times(1000), times(1000)], ids=["10", "1,000", "true"])
@pytest.mark.slow
def test_rows_that_count_for_many_are_refused_if_their_number_was_agreed_on(shared, way, tmp_path):
    if shared.most is None:
        result = integrated(shared, way, tmp_path)
        assert result.most_rows is None
        assert result.n_rows > 10 * ROWS
        return
    with refused("SHARE_MALFORMED", rf"its parties add at most {MOST * len(PARTIES)} \(\[sharing.most_rows\]\)"):
        integrated(shared, way, tmp_path)


@pytest.mark.parametrize(
    ("way", "n_counted"),
    [(times(1), 1), (flipped_times(1), 1), (products_times(-4), 1), (times(0), 0), (times(-1), -1)],
    ids=["honest", "flipped", "products -4", "nothing", "subtracted"],
)
@pytest.mark.slow
def test_what_other_rows_could_have_added_is_not_noticed_but_the_number_of_rows_is_said(
    shared, way, n_counted, tmp_path
):
    result = integrated(shared, way, tmp_path)
    assert abs(result.n_rows - (len(HONEST) + n_counted) * ROWS) <= 5


def test_the_analyst_is_told_to_compare_numbers_of_rows_if_none_was_agreed_on(shared, tmp_path):
    world = shared.copied(tmp_path)
    world.share(ONE)
    files = [str(tmp_path / name / "outbox" / f"{name}.dcsum") for name in PARTIES]
    said = CliRunner().invoke(app, ["analyst", "integrate", *files, "-C", str(tmp_path / "analyst")])
    assert said.exit_code == 0, said.output
    told = "says no most_rows: ask each party how many rows it added" in said.output
    assert told == (shared.most is None)


@st.composite
def tables(draw):
    """Any rows of a common map, with targets of any kind: few, all alike, on the sphere or anywhere within."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, D = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    v = random.normal(size=(n, D))
    v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)
    v *= draw(st.sampled_from([0.0, 1e-6, 1.0])) + random.random((n, 1)) * draw(st.sampled_from([0.0, 1.0]))
    v /= np.maximum(1.0, np.linalg.norm(v, axis=1, keepdims=True))
    if draw(st.booleans()):
        v[:] = v[0]
    noise = draw(st.sampled_from([0.0, 0.03, 0.1, 3.0, 100.0]))
    if draw(st.booleans()):
        C = draw(st.integers(2, 5))
        return RidgeSums(D, classes=range(C), noise=noise), v, random.integers(draw(st.integers(1, C)), size=n), random
    y = random.choice([-1.0, 1.0, random.uniform(-1, 1), 5.0], size=n)
    return RidgeSums(D, limits=(-1.0, 1.0), noise=noise), v, y, random


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "words"), [(times(20), rf"at most {MOST * len(PARTIES)}"), (times(-20), "is not one of rows")]
)
def test_rows_of_a_study_are_compared_with_what_was_agreed_on(way, words, tmp_path):
    """Complete ones, where the total tells no others."""
    sharing = {"statistics": ("least squares",), "most_rows": dict.fromkeys(PARTIES, MOST)}
    (root := tmp_path / "agreed").mkdir()
    world = new_sums_world(root, "regression", sharing=sharing)
    world.share_all(HONEST)
    with refused("SHARE_MALFORMED", words):
        integrated(world, way, tmp_path / "copied")


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(tables(), st.integers(1, 10_000))
def test_no_total_of_rows_is_refused(made, times_each):
    """Whatever the rows are, however often each is there, and with noise of any size."""
    statistic, v, y, random = made
    total = times_each * statistic.part(v, y) + statistic.noise_of_each * random.normal(size=statistic.n_numbers)
    assert statistic.impossible(total) is None


@pytest.mark.parametrize("statistic", [RidgeSums(20, classes=(0, 1)), RidgeSums(20, limits=(-1.0, 1.0))], ids=KINDS)
def test_bounds_leave_room_for_noise_and_for_little_more(statistic):
    """Rows at all bounds at once: none of 500 draws is refused, and many are if noise is taken to be a quarter."""
    v = np.eye(20)[np.arange(200) % 20]
    y = np.arange(200) % 2 * 2 - 1 if statistic.classes is None else np.arange(200) % 2
    part, random = statistic.part(v, y), np.random.default_rng(1)
    draws = statistic.noise_of_each * random.normal(size=(500, statistic.n_numbers))
    assert not any(statistic.impossible(part + 1.2 * noise, noise=1.2 * statistic.noise) for noise in draws)
    assert any(statistic.impossible(part + noise, noise=statistic.noise / 4) for noise in draws[:100])
