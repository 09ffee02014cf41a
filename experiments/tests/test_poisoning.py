"""What a party that adds something else does to the model: what the page says is what was measured, and can be."""

from pathlib import Path

import pandas as pd
import pytest

from datacollab_experiments.sums.poisoning import TABLES, WAYS

DOCS = Path(__file__).parents[2] / "docs"
PRODUCTS = "products of columns and target times"


@pytest.fixture(scope="module")
def measured():
    table = pd.read_csv(DOCS / "results" / "sums" / "poisoning.csv")
    assert list(table["table"].unique()) == list(TABLES)
    assert list(table["adds"].unique()) == list(WAYS)
    return table.set_index(["adds", "table"])


def ranges(measured, way):
    """How much log loss rises and accuracy falls, as the page writes the least and the most of five tables."""
    honest, made_up = measured.loc["its rows"], measured.loc[way]
    rises, falls = made_up["log loss"] - honest["log loss"], honest["accuracy"] - made_up["accuracy"]
    ends = ([f"{abs(each.round(3)):.2f}".removeprefix("0") for each in (of.min(), of.max())] for of in (rises, falls))
    return " | ".join(" to ".join(each) for each in ends)


@pytest.mark.parametrize(
    ("words", "way", "refused"),
    [
        ("its rows, labels wrong", "its rows, labels moved", "never"),
        ("nothing", "nothing", "never"),
        ("its rows, subtracted", "its rows, subtracted", "never"),
        ("products of columns and target, times −4", f"{PRODUCTS} -4", "0 to 30 % (−10: always)"),
        ("ten times its rows, labels wrong", "10 times its rows, labels moved", "with `most_rows`"),
    ],
)
def test_the_page_says_what_was_measured(measured, words, way, refused):
    page = (DOCS / "threat-model.md").read_text(encoding="utf-8")
    assert f"| {words} | {refused} | {ranges(measured, way)} |" in page
    found = measured.loc[way]
    expected = {"never": (0, 0, 0), "with `most_rows`": (0, 0, 1)}.get(refused, (0, 0.3, 0.3))
    assert (found["refused"].min(), found["refused"].max(), found["refused with most_rows"].max()) == expected


def test_no_honest_total_was_refused_and_larger_factors_always(measured):
    assert (measured.loc["its rows"]["refused with most_rows"] == 0).all()
    for factor in (-10, -20):
        assert (measured.loc[f"{PRODUCTS} {factor}"]["refused"] == 1).all()
