"""What the pages for the data protection officer say is what the program does, and prints."""

import csv
import re
from pathlib import Path

import pytest
from blocks import ROOT

from datacollab.agreement import Sharing, sharing_sentences
from datacollab.anchor import EqualRows
from datacollab.bundle import KeyPair
from datacollab.by_rows.party._rows_summary import LEAST_ROWS
from datacollab.by_sums.party import ATTACKERS, auc_text
from datacollab.by_sums.party._sums_summary import OF_STUDY, also_in_anchor
from datacollab.by_sums.plan import _FEWEST_OWN_ROWS
from datacollab.cli._command import COMMANDS
from datacollab.folder.step_table import STEPS
from datacollab.risk.audit._findings import AMBER_LIMIT, CRITERIA, GREEN_LIMIT
from datacollab.steps.party import Policy
from datacollab.steps.party._assessment import _AMBER, _RED, grade
from datacollab.study import study_membership_figures
from datacollab.sums import membership_figures
from sums_world import cards_of

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
DPIA, GDPR = PAGES["dpia"], PAGES["gdpr"]


def test_the_figures_are_those_that_a_check_prints():
    *people, rare = sorted(membership_figures(), key=lambda each: (each.rare, each.n_rows))
    for name, words in ATTACKERS.items():
        figures = " | ".join(auc_text(getattr(each, name)) for each in (*people, rare))
        assert f"| {words} | {figures} |" in DPIA
    assert "| 1,000 rows, ten of them with the person's outcome |" in DPIA
    assert rare.n_rows == 1000


def test_the_figures_of_studies_are_those_that_share_prints():
    """The page's table, of which each line is a set of statistics, has what `party share` reads from the package."""
    _, _, table = PAGES["threat-model"].partition("\n| totals of ")
    heads, _, *lines = (line.strip("| ").split(" | ") for line in table.partition("\n\n")[0].split("\n"))
    assert len(lines) >= 5
    for names, *cells in lines:
        statistics = tuple(names.split(", "))
        errors = "classical" if "classical" in names else "robust"
        asked = [each.partition(" (")[0] for each in statistics]
        measured = {each.n_rows: each for each in study_membership_figures(asked, errors=errors)}
        assert {each.statistics for each in measured.values()} == {statistics}
        for head, cell in zip(heads, cells, strict=True):
            who, n_rows = head.removesuffix(" rows").split(", ")
            found, name = measured[int(n_rows.replace(",", ""))], "analyst" if who == "analyst alone" else "together"
            assert cell == f"{auc_text(getattr(found, name))} ({auc_text(getattr(found, f'{name}_of_tenth'))})"


def test_every_page_says_that_no_secret_map_protects_a_study():
    assert "**No secret map protects a [study](study.md)**" in PAGES["threat-model"]
    for name in ("dpia", "study"):
        assert "threat-model.md#studies" in PAGES[name]
        assert re.search("no secret map protects", PAGES[name], flags=re.IGNORECASE)
    assert OF_STUDY.startswith("No secret map")


def test_a_hospital_reads_of_warnings_before_it_meets_them():
    page = " ".join(PAGES["hospital"].split())
    warning = also_in_anchor(EqualRows(n_equal=3, by_chance=5))
    assert "different people may have equal rows" in warning
    assert "different people may have [equal rows]" in page
    assert "do not share" in warning
    entities = {name: f"The {name}" for name in ("a", "b", "c", "analyst")}
    keys = {name: KeyPair.generate() for name in "abc"}
    (few,) = sharing_sentences(Sharing(mask_keys=cards_of(keys, "abc"), entities=entities))
    assert few.startswith("Only 3 legal entities take part")
    assert "*Only 3 legal entities take part*" in page


def test_one_scale_is_on_all_pages_in_the_policy_and_in_the_audit():
    assert (_AMBER, _RED) == (0.5 + GREEN_LIMIT, 0.5 + AMBER_LIMIT)
    assert [grade(_RED), grade(_RED + 0.01)] == ["amber", "red"]
    policy = Policy()
    assert policy.max_membership == _RED
    assert policy.max_linkage == policy.max_reidentification == AMBER_LIMIT
    assert f"AUC of membership is above .{100 * _RED:.0f}, or if more than {100 * AMBER_LIMIT:.0f} in 100" in DPIA
    assert f"above .{100 * _AMBER:.0f} is rated amber, above .{100 * _RED:.0f} red" in DPIA
    levels = PAGES["threat-model"]
    assert f"an AUC above .{100 * _RED:.0f}" in levels
    assert f"an AUC above .{100 * _AMBER:.0f}" in levels


def test_the_fewest_rows_are_the_programs():
    assert f"A party adds at least {_FEWEST_OWN_ROWS} rows. If rows are shared, fewer than {LEAST_ROWS} are" in DPIA
    assert Policy().min_rows == _FEWEST_OWN_ROWS
    assert f"In projects of rows, fewer than {LEAST_ROWS} are refused, too" in PAGES["release"]


@pytest.mark.parametrize("criterion", [name for name in CRITERIA if name != "membership"])
def test_the_opinions_criteria_are_those_of_the_audit(criterion):
    assert re.search(rf"^\| {criterion} \|", GDPR, flags=re.MULTILINE)


def test_commands_and_options_on_the_pages_are_there():
    steps = {**STEPS, **COMMANDS}
    typed = re.findall(r"`(?:datacollab )?((?:party|remote|log) \w+|trial)\b([^`]*)`", DPIA + GDPR)
    assert {name for name, _ in typed} >= {"party check", "remote withdraw", "party withdraw", "party forget", "trial"}
    for name, rest in typed:
        for option in re.findall(r"--[\w-]+", rest):
            assert option in {each.option.partition(",")[0] for each in steps[name].inputs}, (name, option)


def test_what_can_be_taken_back_is_said_alike():
    """The three ways of withdrawing, on the page, in the help and on the desk."""
    help = " ".join(STEPS["party withdraw"].does.split())
    assert "A file that the analyst has is out of reach" in help
    assert "`datacollab remote withdraw`" in help
    templates = ROOT / "src" / "datacollab" / "desk" / "party" / "templates"
    said = [path.read_text(encoding="utf-8") for path in Path(templates).glob("*.html")]
    said += [text for name, text in PAGES.items() if name != "gdpr"]
    for text in said:
        for before in re.findall(r"([^.:;]*)cannot be called back", text.replace("\n", " ")):
            assert "received" in before or "models that were sent" in before
    assert "A file that the analyst has received **cannot be called back**" in GDPR


def test_a_signature_is_asked_for_where_the_page_says():
    assert "The program asks for no handwritten signature; assessment and audit report have a line for one." in DPIA
    source = ROOT / "src" / "datacollab"
    for place in ("steps/party/assessment.md", "risk/audit/page.html"):
        assert re.search(r"Decision.*signature", (source / place).read_text(encoding="utf-8"))


def test_articles_stand_where_they_belong():
    cited = {
        "controller (Art. 4(7))": 1,
        "joint controllers (Art. 26)": 1,
        "processor (Art. 28)": 1,
        "safeguards of Art. 89(1)": 1,
        "access (Art. 15)": 1,
        "rectification (Art. 16)": 1,
        "erasure (Art. 17), objection (Art. 21)": 1,
        "impact assessment (Art. 35(3)(b))": 1,
        "Security (Art. 32)": 1,
        "Breaches (Art. 33, 34)": 1,
    }
    assert {words: GDPR.count(words) for words in cited} == cited


def test_what_is_read_of_a_value_alone_is_what_was_measured():
    """The largest figure over anchors, of a category; and others' beside it."""
    with (ROOT / "docs" / "results" / "sums" / "rare_values.csv").open(encoding="utf-8") as stream:
        measured = list(csv.DictReader(stream))

    def largest(figure, shortened):
        found = []
        for total in ("300", "1500"):
            rows = [each for each in measured if (each["rows"], each["value"]) == (total, "category")]
            found.append(max(float(each[figure]) for each in rows if each["shortened"] == str(shortened)))
        return [f"{each:.2f}".removeprefix("0") for each in found]

    (few, many), (few_others, many_others) = largest("person", True), largest("others", True)
    said = f"in {few} (300 rows) and {many} (1,500) of trials, others' in {few_others} and {many_others}. If"
    assert said in PAGES["threat-model"]
    assert (
        f"such rows](sums.md#rows-that-stand-alone): {' and '.join(largest('person', False))}." in PAGES["threat-model"]
    )
