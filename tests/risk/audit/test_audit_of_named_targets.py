"""Audits of parties with times to events, effects, or no targets."""

import numpy as np
import pytest

import datacollab as dc
from datacollab.errors import AgreementError
from datacollab.party import GaussianNoise, Microaggregation
from datacollab.targets import effect_target, survival_target

RANDOM = np.random.default_rng(0)
N = 100
X, ANCHOR, PUBLIC = (RANDOM.normal(size=(n, 6)) for n in (N, 80, 240))


def targets(n):
    event, time = RANDOM.random(n) < 0.5, 1.0 + np.floor(RANDOM.exponential(600.0, size=n))
    treatment, outcome = RANDOM.integers(0, 2, n), RANDOM.normal(size=n)
    return {
        "survival": survival_target(event, time),
        "effect": effect_target(treatment, outcome),
        "survival-effect": effect_target(treatment, event=event, time=time),
        "none": None,
    }


OWN, OTHERS = targets(N), targets(240)


def audited(kind, *, defences=(), time_step="auto", level="T0"):
    party = dc.Party(
        "a", dc.obfuscator("pca", 3), fit_on=ANCHOR, defences=defences, time_step=time_step,
        random_state=np.random.RandomState(0),
    ).fit(X, OWN[kind])  # fmt: skip
    result = dc.audit(
        party, X, ANCHOR, public=PUBLIC, public_target=OTHERS[kind], y=OWN[kind], levels=[level], random_state=0
    )
    return result


@pytest.mark.parametrize("kind", ["survival", "effect", "survival-effect", "none"])
@pytest.mark.parametrize("defended", [False, True])
@pytest.mark.slow
def test_every_kind_is_attacked(kind, defended):
    found = audited(kind, defences=[Microaggregation(5)] if defended else ())
    linkage = [finding.value for finding in found.findings if finding.metric == "linkage"]
    assert linkage
    assert all(0 <= value <= 1 for value in linkage)


@pytest.mark.slow
def test_exact_times_give_rows_away_and_coarse_ones_less():
    """Most rows have a time of their own, which undoes microaggregation by itself; in steps few have."""
    sentences, by_time_alone = {}, {}
    for step in (None, "auto"):
        result = audited("survival", defences=[Microaggregation(5)], time_step=step, level="T1")
        (sentences[step],) = [each for each in result.assumptions if "as times are shared" in each]
        by_time_alone[step] = max(
            finding.baseline
            for finding in result.findings
            if finding.metric == "linkage" and "candidates’ labels known" in finding.attack
        )
    exact, coarse = share_alone(None), share_alone("auto")
    assert coarse < 0.5 * exact
    assert f"{exact:.0f} % of the rows have a time" in sentences["auto"]
    assert f"as times are shared, {exact:.0f} % do" in sentences[None]
    assert f"as times are shared, {coarse:.0f} % do" in sentences["auto"]
    assert by_time_alone[None] > 0.9
    assert by_time_alone["auto"] < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["survival", "effect", "survival-effect"])
def test_who_knows_a_records_exact_target_finds_its_row(kind):
    """Whatever hides the features: noise, here, in which nobody finds anything by them."""
    found = {}
    for finding in audited(kind, defences=[GaussianNoise(5.0)], time_step=None, level="T1").findings:
        if finding.metric == "linkage":
            known = finding.attack == "forward map, candidates’ labels known"
            found[known] = max(found.get(known, 0.0), finding.value)
    assert found[True] > 0.85
    assert found[False] < 0.3


def share_alone(step):
    """Of the shared rows those whose event and time no other has, in per cent."""
    party = dc.Party("a", dc.obfuscator("pca", 3), time_step=step).fit(X, OWN["survival"])
    pairs = [tuple(target) for target in party.share(ANCHOR).target.tolist()]
    return 100 * sum(pairs.count(pair) == 1 for pair in pairs) / len(pairs)


def test_other_kinds_of_public_targets_are_refused():
    party = dc.Party("a", dc.obfuscator("pca", 3)).fit(X, OWN["survival"])
    with pytest.raises(AgreementError, match="public_target is not of kind 'survival'"):
        dc.audit(party, X, ANCHOR, public=PUBLIC, public_target=np.zeros(240, dtype=int))
    with pytest.raises(AgreementError, match="y differs"):
        dc.audit(party, X, ANCHOR, y=OTHERS["survival"][:N])
