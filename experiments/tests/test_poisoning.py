"""What a party that adds something else does to the model: what the page says is what was measured, and can be."""

from pathlib import Path

import pandas as pd
import pytest

from datacollab_experiments.pays.draws import draw
from datacollab_experiments.pays.settings import Setting
from datacollab_experiments.pays.tables import load_table
from datacollab_experiments.sums.poisoning import N_PARTIES, TABLES, WAYS, outcomes

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


def test_a_draw_is_as_was_measured(measured):
    """One of twenty of a table in which all had the same end."""
    name = "breast-cancer"
    setting = Setting(dataset=name, n_parties=N_PARTIES, n_per_party=TABLES[name], labelled=False, defence="sums")
    found = dict(outcomes(draw(load_table(name), setting, 0)))
    for way, (is_refused, is_refused_with_agreement, *_) in found.items():
        of_table = measured.loc[(way, name)]
        assert (is_refused, is_refused_with_agreement) == (of_table["refused"], of_table["refused with most_rows"])
    losses = {way: each[3] for way, each in found.items()}
    assert losses["its rows"] < losses["its rows, labels moved"] < losses["10 times its rows, labels moved"]
