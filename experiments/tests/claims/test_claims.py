import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from claim_rows import PARTIES, row, rows_of, the_papers_world, two_methods, verdicts_of

from datacollab_experiments.claims import CLAIMS, check_claims, published_values
from datacollab_experiments.paper import Condition


def test_claims_can_be_told_apart_and_read():
    assert len({claim.id for claim in CLAIMS}) == len({claim.sentence for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.sentence.endswith(".")
        assert "p < .05" in claim.test or "< .05" in claim.test
        assert claim.quota == "most" or "most" not in claim.sentence
        assert re.fullmatch(r"(rq[1-4]|regression)-[a-z-]+", claim.id)


def test_claims_cover_every_experiment_and_its_sources():
    assert {name for claim in CLAIMS for name in claim.experiments} == {
        "rq1", "rq2", "rq3", "rq4", "regression", "slice",
    }  # fmt: skip
    assert {value.table for value in published_values()} <= {claim.source for claim in CLAIMS}


@pytest.mark.slow
def test_everything_holds_in_the_papers_world():
    found = verdicts_of(rows_of(the_papers_world()))
    assert {name: verdict.verdict for name, verdict in found.items()} == dict.fromkeys(found, "holds")
    assert {verdict.n_seeds for verdict in found.values()} == {12}


@pytest.mark.slow
def test_nothing_holds_where_all_is_reversed():
    """But what says that something does not differ, or does not change: that is its own reverse."""
    found = verdicts_of(rows_of(the_papers_world(), sign=-1))
    neutral = {"rq1-lti-equals-gep", "rq3-representation-linear"}
    for name, verdict in found.items():
        assert verdict.verdict == ("holds" if name in neutral else "does not hold"), name


@pytest.mark.nightly
def test_only_ties_hold_where_all_methods_are_equal():
    """All scores 0.5, up to noise: nothing is above anything, and what claims a tie up to a margin holds."""
    world = [(*entry[:4], 10.0 if entry[0] in ("regression", "slice") else 0.2, {}) for entry in the_papers_world()]
    found = verdicts_of(rows_of(world, n_seeds=40))
    holds = {name for name, verdict in found.items() if verdict.verdict == "holds"}
    assert holds == {
        "rq1-lti-equals-gep", "rq2-tsl-center-highest", "rq2-tsl-second", "rq4-umap-resists",
        "rq4-lti-competes-under-pca", "regression-kti-ties-under-kernel-pca", "regression-linear-ties-under-pca",
    }  # fmt: skip


@pytest.mark.nightly
def test_noise_is_undecided_in_about_95_of_100_cases():
    rng = np.random.default_rng(0)
    counts = {"holds": 0, "undecided": 0, "does not hold": 0}
    for _ in range(300):
        rows = two_methods(*(0.5 + 0.01 * rng.normal(size=(2, 6, 8))))
        counts[verdicts_of(rows)["rq2-tsl-above-kti"].verdict] += 1
    assert counts["holds"] == 0
    assert 0.92 < counts["undecided"] / 300 < 0.98


def test_pairing_by_seed_sees_through_what_a_seed_does_to_all():
    difficulty = np.random.default_rng(0).normal(size=10)
    gain = 0.001 * np.random.default_rng(1).normal(1, 0.2, size=(6, 10))
    rows = two_methods(difficulty + gain, [difficulty] * 6)
    assert verdicts_of(rows)["rq2-tsl-above-kti"].verdict == "holds"
    strangers = {
        "rq2": [replace(each, seed=each.seed * 7 % 10) if each.name == "KTI" else each for each in rows["rq2"]]
    }
    assert verdicts_of(strangers)["rq2-tsl-above-kti"].verdict == "undecided"


def test_seeds_without_a_partner_do_not_count():
    """Scores of a method fall steeply from seed to seed: only the right pairs differ by the same."""
    condition = Condition(hyperparameters="paper")
    rows = [row("rq2", condition, "KTI+TSL", seed, accuracy=0.9 - 0.1 * seed + 0.01) for seed in range(6)]
    rows += [row("rq2", condition, "KTI", seed, accuracy=0.9 - 0.1 * seed) for seed in (8, 7, 4, 3, 2)]
    verdict = verdicts_of({"rq2": rows})["rq2-tsl-above-kti"]
    assert (verdict.verdict, verdict.n_seeds) == ("holds", 3)
    assert "0.010 ± 0.000" in verdict.evidence


def test_failures_are_left_out():
    gain = 0.02 + 0.001 * np.random.default_rng(0).normal(size=(2, 10))
    rows = two_methods(0.5 + gain, np.full((2, 10), 0.5))
    failed = [
        replace(each, scores={"accuracy": 0.0} if each.seed == 3 else {}, error="NumericalError: singular")
        if each.name == "KTI+TSL" and each.seed in (3, 4) and each.condition.n_parties == 2
        else each
        for each in rows["rq2"]
    ]
    whole, part = (verdicts_of({"rq2": part})["rq2-tsl-above-kti"] for part in (rows["rq2"], failed))
    assert (whole.n_seeds, part.n_seeds) == (10, 8)
    assert (whole.most_seeds, part.most_seeds) == (10, 10)
    assert whole.verdict == part.verdict == "holds"
    nothing = [replace(each, scores={}, error="no") for each in rows["rq2"]]
    assert verdicts_of({"rq2": nothing})["rq2-tsl-above-kti"].verdict == "not run"


def test_one_reversed_condition_refutes_all_but_not_most():
    rng = np.random.default_rng(0)
    above = np.array([0.02, 0.02, 0.02, 0.02, 0.02, -0.02])[:, None] + 0.005 * rng.normal(size=(6, 10))
    rows = two_methods(0.5 + above, np.full((6, 10), 0.5))
    verdict = verdicts_of(rows)["rq2-tsl-above-kti"]
    assert verdict.verdict == "does not hold"
    assert "5 of 6 comparisons shown, 1 reversed (mnist, K=64: KTI+TSL - KTI)" in verdict.evidence
    rq4 = {"rq4": [replace(each, experiment="rq4") for each in rows["rq2"]]}
    assert verdicts_of(rq4)["rq4-tsl-helps"].verdict == "holds"


@pytest.mark.parametrize(
    ("n_above", "verdict"), [(6, "holds"), (4, "holds"), (3, "does not hold"), (0, "does not hold")]
)
def test_most_is_more_than_half(n_above, verdict):
    sign = np.where(np.arange(6) < n_above, 1, -1)[:, None]
    above = 0.02 * sign + 0.002 * np.random.default_rng(0).normal(size=(6, 10))
    rows = two_methods(0.5 + above, np.full((6, 10), 0.5), experiment="rq4")
    assert verdicts_of(rows)["rq4-tsl-helps"].verdict == verdict


@pytest.mark.parametrize(
    ("gain", "verdict"), [(0.0, "holds"), (-0.009, "holds"), (-0.0101, "does not hold"), (0.0099, "holds")]
)
def test_a_margin_is_where_the_claim_says(gain, verdict):
    """Without any variance, so that the side of the margin decides."""
    rows = two_methods([[0.5 + gain] * 4], [[0.5] * 4], experiment="rq1", names=("LTI", "GEP"))
    assert verdicts_of(rows)["rq1-lti-equals-gep"].verdict == verdict


@pytest.mark.parametrize("n_seeds", [1, 2])
def test_one_or_two_seeds_decide_nothing(n_seeds):
    found = verdicts_of(rows_of(the_papers_world(), n_seeds=n_seeds))
    assert {verdict.verdict for verdict in found.values()} == {"undecided"}
    for verdict in found.values():
        assert verdict.n_seeds == n_seeds
        assert "Fewer than three seeds" in verdict.evidence
        assert "nan" not in verdict.evidence


def test_what_was_not_run_is_said_so():
    for verdict in check_claims({}):
        assert (verdict.verdict, verdict.n_seeds) == ("not run", 0)
    few = [each for each in rows_of(the_papers_world())["rq1"] if each.condition.n_parties < 8]
    found = verdicts_of({"rq1": few})
    assert found["rq1-kti-above-linear-many-parties"].verdict == "not run"
    assert found["rq1-kti-above-linear"].verdict == "holds"
    assert found["rq2-tsl-above-kti"].verdict == "not run"


def test_presets_of_hyperparameters_are_apart():
    rows = rows_of(the_papers_world())["rq2"]
    other = [
        replace(each, condition=replace(each.condition, hyperparameters="recommended", out_of_sample="auto"))
        for each in rows_of(the_papers_world(), sign=-1)["rq2"]
    ]
    assert verdicts_of({"rq2": rows + other})["rq2-tsl-above-kti"].verdict == "holds"
    both = verdicts_of({"rq2": rows + other}, hyperparameters="recommended")
    assert both["rq2-tsl-above-kti"].verdict == "does not hold"
    assert verdicts_of({"rq2": rows}, hyperparameters="recommended")["rq2-tsl-above-kti"].verdict == "not run"


def test_a_method_that_failed_is_not_surpassed():
    """The one linear method above KTI has failed rows: those that are left prove nothing about every one."""
    scores = {"KTI": 0.6, "MPP": 0.5, "GEP": 0.5, "ODC": 0.5, "LTI": 0.9}
    rows = [
        row("rq1", Condition(n_parties=K, hyperparameters="paper"), name, seed, accuracy=score)
        for (name, score), K, seed in product(scores.items(), PARTIES, range(5))
    ]
    assert verdicts_of({"rq1": rows})["rq1-kti-above-linear"].verdict == "does not hold"
    failed = [replace(each, scores={}, error="no") if each.name == "LTI" else each for each in rows]
    assert verdicts_of({"rq1": failed})["rq1-kti-above-linear"].verdict == "not run"
    at_most_parties = [
        replace(each, scores={}, error="no")
        if each.name == "LTI" and each.condition.n_parties == max(PARTIES)
        else each
        for each in rows
    ]
    found = verdicts_of({"rq1": at_most_parties})
    assert found["rq1-kti-above-linear"].verdict == "does not hold"
    assert found["rq1-advantage-grows"].verdict == "not run", "lines over different ranges are not compared"
