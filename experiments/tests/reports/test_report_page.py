import base64
import csv
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from report_rows import all_rows, failed, scored

from datacollab_experiments.claims._claims import check_claims
from datacollab_experiments.paper import Condition
from datacollab_experiments.reports._claims_text import claims_html, claims_markdown, count_verdicts
from datacollab_experiments.reports._picture import Picture
from datacollab_experiments.reports._report import write_report
from datacollab_experiments.reports._summary import _seeds

SMALL = all_rows(2, ("mnist",), ("slice-localization",))
for name in ("rq3", "rq4", "slice"):
    SMALL[name] = [row for row in SMALL[name] if row.condition.hyperparameters == "paper"]
SMALL["rq1"] = failed(SMALL["rq1"], lambda row: row.name == "KTI" and row.seed == 0)
ATTACK = '"><script>alert(1)</script>&<img src=x onerror=alert(2)>'
PICTURE = Picture("MNIST, 64 columns", ["originals", "UMAP (LR)"], np.eye(16).reshape(2, 8, 4, 4))


class Page(HTMLParser):
    """Elements of a page that are not closed, what it would load, its anchors and its text."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.loaded, self.links, self.ids, self.text = [], [], [], [], [], ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.loaded += [found[name] for name in ("src", "data", "srcset", "action") if name in found]
        self.links += [found["href"]] if "href" in found else []
        self.ids += [found["id"]] if "id" in found else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def write(rows, path, **options):
    options = {"title": "A title", "command": "datacollab x --preset paper", **options}
    return write_report(rows, path, **options)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    return path, write(SMALL, path, notes=["One forest, not ten."], pictures=[PICTURE])


@pytest.mark.slow
def test_all_files_are_named_and_there(report):
    path, files = report
    assert sorted(files) == sorted(found for found in path.rglob("*") if found.is_file())
    names = {str(file.relative_to(path)) for file in files}
    assert {"index.html", "rows.csv", "seconds.csv", "tables/claims.md"} <= names
    for table in ("rq1_mnist_paper", "rq3_seconds-construct_mnist_paper", "rq4_attacks_paper", "regression_paper"):
        assert {f"tables/{table}{suffix}" for suffix in (".md", ".csv")} <= names
    for figure in ("rq1_paper", "rq1_recommended", "rq4_trade-off_paper", "picture-1_MNIST-64-columns"):
        assert {f"figures/{figure}{suffix}" for suffix in (".svg", ".png")} <= names
    for file in files:
        if file.suffix == ".svg":
            ElementTree.parse(file)
        if file.suffix == ".png":
            assert file.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.slow
def test_the_page_is_whole_and_stands_alone(report):
    path, files = report
    source = (path / "index.html").read_text(encoding="utf-8")
    page = Page(source)
    assert page.open == []
    n_figures = sum(file.suffix == ".svg" for file in files)
    assert page.tags.count("img") == len(page.loaded) == n_figures
    for reference in page.loaded:
        prefix, _, content = reference.partition(",")
        assert prefix == "data:image/svg+xml;base64"
        ElementTree.fromstring(base64.b64decode(content))
    bare = re.sub(r"base64,[\w+/=]+", "", source)
    for outside in ("http:", "https:", "url(", "@import", "<script", "<link", "<iframe", "file:"):
        assert outside not in bare
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(set(page.ids)) == len(page.ids)


@pytest.mark.slow
def test_a_narrow_screen_scrolls_tables_and_not_the_page(report):
    source = (report[0] / "index.html").read_text(encoding="utf-8")
    assert 'name="viewport" content="width=device-width, initial-scale=1"' in source
    assert ".wide { overflow-x: auto; }" in source
    assert source.count("<table") == source.count('<div class="wide"><table') > 0
    assert re.search(r"code {[^}]*overflow-wrap: anywhere;", source)


@pytest.mark.slow
def test_the_page_says_what_it_rests_on(report):
    text = Page((report[0] / "index.html").read_text(encoding="utf-8")).text
    for words in (
        "A title", "datacollab x --preset paper", "One forest, not ten.", "numpy 2.4.0", "commit 0123abc",
        "12 × NumericalError: the pencil is singular; raise alpha.", "How to read this", "MNIST, 64 columns",
    ):  # fmt: skip
        assert words in text
    for verdict in check_claims(SMALL, "recommended"):
        assert verdict.claim.sentence in text
        assert verdict.evidence in text


@pytest.mark.slow
def test_rows_are_listed_without_what_differs_between_runs(report):
    with (report[0] / "rows.csv").open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    every = [row for part in SMALL.values() for row in part]
    assert len(records) == len(every)
    found = {
        (record["experiment"], record["name"], record["seed"], record["cell"], record["hyperparameters"]): record
        for record in records
    }
    for row in every:
        record = found[row.experiment, row.name, str(row.seed), row.cell, row.condition.hyperparameters]
        assert {key: float(record[key]) for key in row.scores} == row.scores
        assert record["error"] == ("NumericalError" if row.error else "")
        assert record["n_sources"] == str(row.condition.n_sources or "")
    assert not {"construct", "represent", "commit", "versions"} & set(records[0])
    assert "construct" in (report[0] / "seconds.csv").read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.slow
def test_equal_rows_in_any_order_on_any_day_give_equal_files(tmp_path, report):
    order = np.random.default_rng(0).permutation
    later = {
        name: [
            replace(row, seconds={key: 2 * time for key, time in row.seconds.items()}, commit="fedcba9+")
            for row in (part[position] for position in order(len(part)))
        ]
        for name, part in reversed(SMALL.items())
    }
    written = write(later, tmp_path, notes=["One forest, not ten."], pictures=[PICTURE])
    assert [file.relative_to(tmp_path) for file in written] == [file.relative_to(report[0]) for file in report[1]]
    for file in written:
        same = file.read_bytes() == (report[0] / file.relative_to(tmp_path)).read_bytes()
        varies = "seconds" in file.name or file.name == "index.html"
        assert same or varies, file.name
        assert not (same and file.name == "seconds.csv")


def test_what_comes_from_outside_cannot_become_markup_or_a_path(tmp_path):
    rows = {ATTACK: list(scored(ATTACK, Condition(), [ATTACK], 2))}
    rows["rq1"] = list(scored("rq1", Condition(dataset="../" + ATTACK), ["KTI", ATTACK], 2))
    rows["rq1"] = [replace(row, error=ATTACK, versions={ATTACK: ATTACK}) if row.seed else row for row in rows["rq1"]]
    picture = Picture("../../" + ATTACK, [ATTACK], np.zeros((1, 1, 2, 2)))
    files = write(rows, tmp_path / "in", title=ATTACK, command=ATTACK, notes=[ATTACK], pictures=[picture])
    assert all(file.parent.parent == tmp_path / "in" for file in files if file.parent != tmp_path / "in")
    assert os.listdir(tmp_path) == ["in"]
    page = Page((tmp_path / "in" / "index.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert "script" not in page.tags
    assert page.tags.count("img") == len(page.loaded) == 2
    assert all(reference.startswith("data:image/svg+xml") for reference in page.loaded)
    assert page.text.count(ATTACK) > 6


def test_the_least_reports(tmp_path):
    assert {file.name for file in write({}, tmp_path / "none")} == {"index.html", "rows.csv", "seconds.csv"}
    one = {"unheard-of": list(scored("unheard-of", Condition(), ["KTI"], 1))}
    write(one, tmp_path / "own")
    assert "No table is made for this experiment" in (tmp_path / "own" / "index.html").read_text(encoding="utf-8")


def test_rows_that_cannot_be_told_apart_are_refused_before_anything_is_written(tmp_path):
    rows = list(scored("rq1", Condition(), ["KTI"], 2))
    with pytest.raises(ValueError, match="each result once"):
        write({"rq1": rows + rows[:1]}, tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_claims_stand_side_by_side():
    verdicts = {preset: check_claims(SMALL, preset) for preset in ("paper", "recommended")}
    text = claims_markdown(verdicts)
    table = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(table) == len(verdicts["paper"])
    for line, paper, recommended in zip(table, *verdicts.values(), strict=True):
        assert line.endswith(f"| {paper.verdict} | {recommended.verdict} |")
    page = Page(claims_html(verdicts))
    assert page.tags.count("tr") == 1 + len(verdicts["paper"])
    assert page.tags.count("span") == 2 * len(verdicts["paper"])


def test_verdicts_are_counted():
    verdicts = check_claims({})
    assert count_verdicts(verdicts) == f"not run {len(verdicts)}"
    mixed = [replace(verdicts[0], verdict=kind) for kind in ("holds", "undecided", "holds", "does not hold")]
    assert count_verdicts(mixed) == "holds 2, does not hold 1, undecided 1"
    assert count_verdicts([]) == "no claims"


@pytest.mark.parametrize(
    ("numbers", "words"), [([3, 0, 1, 2], "4 (0-3)"), ([5], "1 (5)"), ([0, 2, 3, 7], "4 (0, 2-3, 7)")]
)
def test_seeds_in_words(numbers, words):
    assert _seeds(numbers) == words
