import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from audit_example import audit_result, finding


def test_every_measure_gets_a_panel_with_the_strongest_attacks():
    drawn_in = audit_result().plot()
    panels = {axes.get_title(): axes for axes in drawn_in}
    assert [axes for axes in drawn_in[0].get_figure().axes if axes.get_visible()] == list(drawn_in)
    assert list(panels) == [
        "re-identification@1", "linkage", "open-world linkage", "membership AUC",
        "attribute ink", "attribute slant", "attribute aspect",
    ]  # fmt: skip
    places = [tick.get_text() for tick in drawn_in[0].get_yticklabels()]
    assert places[0] == "T0: nothing"
    drawn = dict(zip(*reversed(panels["linkage"].lines[0].get_data()), strict=True))
    assert drawn[places.index("T2: all anchor rows")] == 0.993
    assert drawn[places.index("T0: nothing")] == 0.08


def test_the_figure_can_be_written():
    buffer = io.BytesIO()
    audit_result().plot()[0].get_figure().savefig(buffer, format="svg")
    text = buffer.getvalue().decode()
    assert "<svg" in text
    one = audit_result(findings=(finding("linkage", 0.5, low=None, high=None, baseline=None, chance=None),)).plot()
    one[0].get_figure().savefig(io.BytesIO(), format="png")


def test_it_is_drawn_where_one_wants_it():
    result, figure = audit_result(), Figure()
    given = figure.subplots(2, 4)
    drawn = result.plot(ax=given)
    assert list(drawn) == list(given.ravel()[:7])
    for axes, own in zip(drawn, result.plot(), strict=True):
        assert axes.get_title() == own.get_title()
        assert axes.get_ylim() == own.get_ylim()
        np.testing.assert_array_equal(axes.lines[0].get_xydata(), own.lines[0].get_xydata())
    assert not given[1, 3].has_data()
    with pytest.raises(ValueError, match="7 measures to draw, but 1 Axes"):
        result.plot(ax=figure.gca())


def test_nothing_measured_is_nothing_to_draw():
    with pytest.raises(ValueError, match="nothing that can be drawn"):
        audit_result(findings=(finding("linkage", float("nan"), low=None, high=None),)).plot()
