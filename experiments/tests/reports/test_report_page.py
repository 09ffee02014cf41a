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

from datacollab_experiments.claims import check_claims
from datacollab_experiments.paper import Condition
from datacollab_experiments.reports import Picture, write_report

SMALL = all_rows(2, ("mnist",), ("slice-localization",))
for name in ("rq3", "rq4", "slice"):
    SMALL[name] = [row for row in SMALL[name] if row.condition.hyperparameters == "paper"]
SMALL["rq1"] = failed(SMALL["rq1"], lambda row: row.name == "KTI" and row.seed == 0)
ATTACK = '"><script>alert(1)</script>&<img src=x onerror=alert(2)>|*a* `b`'
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


@pytest.mark.nightly
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
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    tables = [file.read_text(encoding="utf-8") for file in files if file.suffix == ".md" and "rq1" in file.name]
    assert tables
    assert all(ATTACK in Page(reader.render(text)).text for text in tables)
    with (tmp_path / "in" / "rows.csv").open(encoding="utf-8", newline="") as file:
        assert ATTACK in {record["name"] for record in csv.DictReader(file)}


def test_rows_that_cannot_be_told_apart_are_refused_before_anything_is_written(tmp_path):
    rows = list(scored("rq1", Condition(), ["KTI"], 2))
    with pytest.raises(ValueError, match="each result once"):
        write({"rq1": rows + rows[:1]}, tmp_path / "report")
    assert not (tmp_path / "report").exists()
