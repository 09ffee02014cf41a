import csv
import io
import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab_experiments.claims import interval
from datacollab_experiments.claims._estimates import Estimate
from datacollab_experiments.claims._published import PublishedValue
from datacollab_experiments.reports._render import to_csv, to_html, to_markdown
from datacollab_experiments.reports._table import Line, ReportTable, TableCell, mark_best, number, with_half_width

PUBLISHED = PublishedValue(
    table="tab:t", dataset="mnist", name="KTI", measure="accuracy", mean=0.5, half_width=0.02, n_trials=30
)
printable = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1)


def cell(*values, **options):
    return TableCell(Estimate(interval(values), options.pop("n_failed", 0)), **options)


def table_of(*cells, heading="mnist", columns=None, note="", decimals=3):
    columns = columns or tuple(f"c{n}" for n in range(len(cells)))
    line = Line((heading,), cells, decimals)
    return ReportTable("name", "rq1", "A caption", "tab:t", ("data set",), columns, (line,), note)


TWO = table_of(
    cell(0.61, 0.62, 0.63, best=True, published=PUBLISHED), cell(0.4, 0.45, 0.5, n_failed=1), TableCell(text="PINV")
)


class Cells(HTMLParser):
    """The text of every cell of a table."""

    def __init__(self, source):
        super().__init__()
        self.cells, self.inside, self.tags = [], False, []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


def test_markdown():
    lines = to_markdown(TWO).splitlines()
    assert lines[0] == "**A caption (tab:t of the paper)**"
    assert lines[2] == "| data set |  | c0 | c1 | c2 | seeds | failed |"
    assert lines[4] == "| mnist | measured | **0.620 ± 0.025** | 0.450 ± 0.124 | PINV | 3 | 1 |"
    assert lines[5] == "|  | published | 0.500 ± 0.020 |  |  |  |  |"
    assert re.fullmatch(r"\|  \| difference \| \+\d+\.\d SE \|  \|  \|  \|  \|", lines[6])


def test_csv_has_all_digits():
    first, second, third = csv.DictReader(io.StringIO(to_csv(TWO)))
    assert (float(first["mean"]), float(first["published_mean"])) == (interval([0.61, 0.62, 0.63]).mean, 0.5)
    assert float(first["half_width"]) == interval([0.61, 0.62, 0.63]).half_width
    assert (first["data set"], first["column"], first["n_seeds"], first["n_failed"]) == ("mnist", "c0", "3", "0")
    assert (second["n_failed"], second["published_mean"], second["difference"]) == ("1", "", "")
    assert (third["text"], third["mean"], third["n_seeds"]) == ("PINV", "", "")


@given(printable)
def test_any_name_survives_html_and_csv(name):
    table = table_of(cell(0.5), heading=name, columns=(name,))
    page = Cells(to_html(table))
    assert page.cells == ["data set", name, "seeds", name, "0.500", "1"]
    assert set(page.tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "b"}
    (record,) = csv.DictReader(io.StringIO(to_csv(table)))
    assert (record["data set"], record["column"]) == (name, name)


@given(printable)
def test_any_name_survives_markdown(name):
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    page = Cells(reader.render(to_markdown(table_of(cell(0.5), heading=name, columns=(name,)))))
    assert page.cells == ["data set", name, "seeds", name, "0.500", "1"]


@given(st.floats(-1e6, 1e6), st.sampled_from([0, 2, 3, None]))
def test_numbers_are_printed_to_their_digits(value, decimals):
    text = number(value, decimals)
    tolerance = 0.51 * 10.0**-decimals if decimals is not None else 0.0051 * abs(value) + 0.51 * (abs(value) >= 100)
    assert abs(float(text) - value) <= tolerance
    assert decimals is None or not (text.startswith("-") and float(text) == 0)


def test_half_widths():
    assert with_half_width(0.5, 0.01, 3) == "0.500 ± 0.010"
    assert with_half_width(0.5, math.nan, 3) == with_half_width(0.5, None, 3) == "0.500"
    assert with_half_width(123.4, 4.56, None) == "123 ± 4.6"


def test_an_interval_that_no_share_can_fill_is_told_by_its_ends():
    """Of two seeds: Student's t has 12.7 for them."""
    assert with_half_width(0.565, 1.207, 3) == "0.565 (0 to 1)"
    assert with_half_width(0.9, 0.6, 3) == "0.900 (0.3 to 1)"
    assert with_half_width(0.565, 0.5, 3) == "0.565 ± 0.500"
    assert with_half_width(3.2, 1.207, 2) == "3.20 ± 1.21"


def test_printed_ties_are_all_marked():
    means = [0.1234, 0.1231, 0.9, 0.1, None]
    cells = tuple(TableCell(None if mean is None else Estimate(interval([mean]))) for mean in means)
    line = mark_best(Line(("x",), cells), [True, True, False, True, True])
    assert [cell.best for cell in line.cells] == [True, True, False, False, False]
    line = mark_best(Line(("x",), cells), [True, True, False, True, True], lower=True)
    assert [cell.best for cell in line.cells] == [False, False, False, True, False]
    assert not any(cell.best for cell in mark_best(Line(("x",), cells), [True] + [False] * 4).cells)
