import itertools
import re
from html.parser import HTMLParser

import pytest

from audit_example import audit_result, finding
from datacollab.risk.audit import Level, Record

NASTY = "<script>alert('x')</script>&\"'"
VOID = {"meta", "br", "img", "rect", "path", "line"}


class Page(HTMLParser):
    """Checks that elements nest, and collects them with their text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not set(self.open) & {"style", "script"}:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())


@pytest.fixture(scope="module")
def page():
    return audit_result().to_html()


def test_the_page_is_well_formed_and_needs_nothing_from_outside(page):
    read = Page(page)
    assert page.startswith("<!doctype html>")
    for tag, attributes in read.elements:
        assert tag not in {"script", "link", "iframe", "img", "object"}
        assert not {"src", "href", "srcset"} & set(attributes)
    assert not re.search(r"url\(|@import|https?://", page)


def test_headings_tables_and_language_are_accessible(page):
    read = Page(page)
    assert ("html", {"lang": "en"}) in read.elements
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    heads = [attributes for tag, attributes in read.elements if tag == "th"]
    assert heads
    assert all(attributes.get("scope") in {"row", "col"} for attributes in heads)
    tables = sum(tag == "table" for tag, _ in read.elements)
    assert tables == sum(tag == "caption" for tag, _ in read.elements) == 3
    named = {attributes["id"] for _, attributes in read.elements if "id" in attributes}
    assert {
        attributes["aria-labelledby"] for _, attributes in read.elements if "aria-labelledby" in attributes
    } <= named
    assert all(attributes.get("aria-hidden") == "true" for tag, attributes in read.elements if tag == "svg")


def test_every_light_is_a_word_and_a_shape(page):
    text = Page(page).text
    assert "Red for singling out, linkability, inference and membership." in text
    assert page.count('<span class="light red">') == 4
    mixed = audit_result(
        findings=(
            finding("linkage", 0.1, low=0.08, high=0.12),
            finding("re-identification@1", 0.1, low=0.06, high=0.2),
            finding("membership AUC", 0.4),
        )
    )
    text = Page(mixed.to_html()).text
    assert (
        "Amber for singling out; inconclusive for membership; green for linkability; not tested for inference." in text
    )
    for shape in ("▲ amber", "● green", "○ not tested", "? inconclusive"):
        assert shape in text


def test_the_page_says_what_the_result_says(page):
    result, text = audit_result(), Page(page).text
    for words in (
        *result.sentences().values(),
        *result.assumptions,
        *result.not_tested,
        *(criterion.reason for criterion in result.all_criteria()),
        "17 T1", "88 T2", "hospital-a", "1,000 anchor rows", "Means of 3 repetitions.",
        "T0 ? inconclusive T1 ■ red T2 ■ red",
    ):  # fmt: skip
        assert " ".join(words.split()) in text


def test_the_appendix_has_the_strongest_attacks_and_then_all(page):
    best, every = (part.split("<tr") for part in page.partition("<h3>The strongest")[2].split("<details>"))
    assert len(every) - 2 == len(audit_result().findings)
    linkage = [row for row in best if re.search(r"T2<.*>linkage<", row)]
    assert len(linkage) == 1
    assert "kernel ridge and emulator, averaged" in linkage[0]
    for rows in (best, every):
        assert sum("class=headline" in row for row in rows) == 4


def test_the_words_that_promise_too_much_never_occur(page):
    good = finding("linkage", 0.08), finding("membership AUC", 0.5), finding("re-identification@1", 0.09)
    for result in (audit_result(), audit_result(findings=good), audit_result(findings=(), complete=False)):
        for text in (result.to_html(), result.summary(), repr(result), result.to_json()):
            assert "anonymous" not in text.lower()
            assert "safe" not in text.lower()


def test_epsilon_is_printed_only_where_it_is_given(page):
    assert "epsilon" not in page.lower()
    assert "ε" not in page
    assert "Differential privacy" not in page
    guaranteed = Page(audit_result(guarantee="Each row: ε = 64, δ = 1e-05.").to_html()).text
    assert "Differential privacy Each row: ε = 64, δ = 1e-05." in guaranteed


def test_an_audit_that_ended_early_says_so_at_the_top(page):
    assert "time budget" not in page
    early = audit_result(complete=False).to_html()
    assert early.index("time budget") < early.index("Red for singling out")


def test_names_are_escaped():
    result = audit_result(
        party=NASTY,
        obfuscator=NASTY,
        findings=(
            finding(f"attribute {NASTY}", 0.5, leak=NASTY, attack=NASTY),
            finding("linkage", 0.5, leak=NASTY, attack=NASTY),
        ),
        levels=(Level(name="T2", title=NASTY, holds=(NASTY,), attacks=(NASTY,)),),
        worst_records=(Record(index=1, margin=2.0, level=NASTY),),
        assumptions=(NASTY,),
        not_tested=(NASTY,),
        version=NASTY,
        guarantee=NASTY,
    )
    page = result.to_html()
    assert "<script" not in page
    assert "alert('x')" not in page
    assert Page(page).text.count("<script>") > 9


def test_records_are_told_by_position_alone(page):
    record = re.search(r'<ol class="records">(.*?)</ol>', page)[1]
    assert re.sub(r"<[^>]+>", " ", record).split() == [
        word for one in audit_result().worst_records for word in (str(one.index), one.level)
    ]
    assert "3.1" not in record
