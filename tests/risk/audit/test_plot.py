import io

import pytest

from audit_example import audit_result, finding


def test_every_measure_gets_a_panel_with_the_strongest_attacks():
    figure = audit_result().plot()
    panels = {axes.get_title(): axes for axes in figure.axes if axes.get_visible()}
    assert list(panels) == [
        "re-identification@1", "linkage", "open-world linkage", "membership AUC",
        "attribute ink", "attribute slant", "attribute aspect",
    ]  # fmt: skip
    places = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert places[0] == "T0: nothing"
    drawn = dict(zip(*reversed(panels["linkage"].lines[0].get_data()), strict=True))
    assert drawn[places.index("T2: all anchor rows")] == 0.993
    assert drawn[places.index("T0: nothing")] == 0.08


def test_the_figure_can_be_written():
    buffer = io.BytesIO()
    audit_result().plot().savefig(buffer, format="svg")
    text = buffer.getvalue().decode()
    assert "<svg" in text
    one = audit_result(findings=(finding("linkage", 0.5, low=None, high=None, baseline=None, chance=None),)).plot()
    one.savefig(io.BytesIO(), format="png")


def test_nothing_measured_is_nothing_to_draw():
    with pytest.raises(ValueError, match="nothing that can be drawn"):
        audit_result(findings=(finding("linkage", float("nan"), low=None, high=None),)).plot()
