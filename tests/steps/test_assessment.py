"""The form of an impact assessment, filled in with the facts of a project and of what would leave."""

import re
from dataclasses import replace

from release_example import digits

from datacollab.anchor import EqualRows
from datacollab.bundle import KeyPair
from datacollab.by_rows.party._rows_summary import RiskFigures
from datacollab.by_sums.party import auc_text
from datacollab.steps.party import (
    WORST_ROSTERS,
    Policy,
    ReleaseSummary,
    SumsSummary,
    assessment,
    find_measured,
    membership_rows,
)
from datacollab.study import study_membership_figures
from datacollab.sums import membership_figures
from sums_world import PARTIES, cards_of, project_of

KEYS = {name: KeyPair.generate() for name in (*PARTIES, "analyst")}
PROJECT = project_of(KEYS, PARTIES, cards_of(KEYS, PARTIES), purpose="Who is ill | <b>soon</b>?\nAt home.")
SUMS = SumsSummary(
    party="north",
    project="wards",
    analyst=KEYS["analyst"].public.fingerprint,
    n_rows=940,
    n_public=0,
    statistic="ridge regression",
    tells=(),
    of_study=False,
    n_components=64,
    n_numbers=2500,
    n_bytes=23000,
    noise=0.1,
    epsilon=None,
    noise_before=None,
    earlier=(),
    n_parties=5,
    n_entities=5,
    others=("south (The | south hospital)",),
    n_unconfirmed=2,
    sentences=("Only some take part.",),
    n_rows_together=1020,
    measured=membership_figures(),
    measured_study=(),
    adjusted={},
)


def test_sums_are_described_with_the_figures_for_their_number_of_rows():
    text = assessment(PROJECT, Policy(approvers=("officer",)), SUMS)
    thousand = next(each for each in membership_figures() if each.n_rows == 1000 and not each.rare)
    assert f"| the analyst and parties together | {auc_text(thousand.together)} | red |" in text
    assert "measured on public tables with 1,000 rows; more rows reveal less" in text
    assert "| Purpose, as all parties agreed | Who is ill \\| &lt;b>soon&lt;/b>? At home. |" in text
    for words in (
        "2,500 numbers (about 23,000 bytes), once: ridge regression over",
        "has noise of 0.1.",
        "| 3: age, pulse, ward |",
        "a model: classification of ill",
        f"The institute, key {KEYS['analyst'].public.fingerprint}",
        "- south (The \\| south hospital)\n",
        "Warning: Only some take part.",
        "at least 20 rows. There is no limit",
        "Approvers: officer",
        Policy(approvers=("officer",)).digest,
        "encrypted for the analyst",
    ):
        assert words in text
    assert KEYS["north"].public.fingerprint not in text
    assert not re.findall(r"\$\w+", text)
    assert max(map(len, re.findall(r"\[[^\]]*\]", text))) < 100


def test_fewer_rows_than_measured_are_said_to_reveal_more():
    how, found = find_measured(membership_figures(), 90)
    assert (how, found.n_rows) == ("measured on public tables with 250 rows; fewer rows reveal more", 250)
    assert find_measured(membership_figures(), 3000)[0] == "measured on public tables with 3,000 rows"
    assert [rating for _, _, rating in membership_rows(found)][-1] == "red"


def test_less_noise_than_measured_is_said():
    assert "less noise or more columns" in assessment(PROJECT, Policy(), replace(SUMS, noise=0.05))
    assert "less noise" not in assessment(PROJECT, Policy(), SUMS)


def test_a_study_and_a_proof_are_said_to_be_what_they_are():
    figures = study_membership_figures(["counts", "effect"])
    study = replace(SUMS, of_study=True, tells=("counts: rows of each level",), statistic="counts", measured=())
    study = replace(study, measured_study=figures, adjusted={"columns": {}})
    text = assessment(PROJECT, Policy(), study)
    areas = "".join(f"{auc_text(each.analyst):>8}" for each in figures if each.statistics == ("effect",))
    assert re.search(rf"^  the analyst alone +{re.escape(areas.strip())}$", text, flags=re.MULTILINE)
    assert "the analyst alone guesses better than by chance" in text
    assert WORST_ROSTERS in " ".join(text.split())
    assert "were not measured" not in text
    ratios = assessment(PROJECT, Policy(), replace(study, statistic="counts, logistic regression"))
    assert "Attacks on logistic regression were not measured" in " ".join(ratios.split())
    assert "No secret map" not in assessment(PROJECT, Policy(), SUMS)
    assert "- counts: rows of each level" in text
    assert "has noise that hides a row as well as 0.1 does in sums for a model." in text
    assert "the study's result; also at those it is given to | analyst |" in text
    assert "(3, 1e-05)-differentially private" in assessment(PROJECT, Policy(), replace(SUMS, epsilon=3.0))


def test_rows_are_described_with_the_audits_figures_limits_and_ratings():
    project, _, _ = digits(60)
    policy = Policy()
    figures = RiskFigures(linkage=0.3, reidentification=None, membership=0.66, ratings={"membership": "amber"})
    facts = {name: 0 for name in ReleaseSummary.__dataclass_fields__ if name.startswith("n_")}
    summary = ReleaseSummary(
        **facts | {"n_rows": 60, "n_free": None},
        in_anchor=EqualRows(n_equal=0, by_chance=0),
        party="north",
        project=project.name,
        analyst=project.analyst.fingerprint,
        dtype="float64",
        task="classification",
        class_counts={"0": 60},
        row_order="shuffled",
        obfuscator="pca",
        fitted_on_private_rows=False,
        kinds_of_defence=("microaggregation",),
        stands_for="several rows",
        defences=("groups of five",),
        risk=figures,
        limits=policy.risk_limits,
        guarantee=None,
    )
    text = assessment(project, policy, summary)
    assert "| membership inference (AUC) | 0.66 | 0.7 | amber |" in text
    assert "| re-identified among strangers | not measured | 20 % | not measured |" in text
    assert "- defences: groups of five" in text
    assert "north.dcshare" in text
    assert "the limits of section 4, audit 'required'" in text
