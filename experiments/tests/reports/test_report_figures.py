import numpy as np
from numpy.testing import assert_allclose
from report_rows import all_rows, attacks, failed, row, scored

from datacollab_experiments.claims import find_published, interval
from datacollab_experiments.paper import Condition
from datacollab_experiments.reports._figures import result_figures

ROWS = all_rows()
PLOTS = {plot.name: plot for plot in result_figures(ROWS)}


def values_of(experiment, name, **settings):
    return [
        row.scores["accuracy"]
        for row in ROWS[experiment]
        if row.name == name and all(getattr(row.condition, key) == value for key, value in settings.items())
    ]


def test_every_experiment_but_regression_has_its_figures():
    kinds = ("rq1", "rq2", "rq3_quantity", "rq3_quality", "rq3_seconds-construct", "rq3_seconds-represent")
    wanted = {f"{kind}_{preset}" for kind in (*kinds, "rq4_trade-off") for preset in ("paper", "recommended")}
    assert set(PLOTS) == wanted
    assert all(plot.name.startswith(plot.experiment) for plot in PLOTS.values())


def test_curves_and_bands_are_means_and_intervals():
    axes = PLOTS["rq1_paper"].figure.axes
    assert [panel.get_title() for panel in axes] == ["mnist", "fashion-mnist"]
    labels = [text.get_text() for text in PLOTS["rq1_paper"].figure.legends[0].get_texts()]
    assert labels == ["Local", "Local+Public", "Central", "MPP", "GEP", "ODC", "LTI", "KTI"]
    curve, band = axes[1].get_lines()[7], axes[1].collections[7]
    for position, n_parties in enumerate((2, 4, 8, 16, 32, 64)):
        where = {"dataset": "fashion-mnist", "hyperparameters": "paper", "n_parties": n_parties}
        wanted = interval(values_of("rq1", "KTI", **where))
        assert_allclose(curve.get_xydata()[position], (n_parties, wanted.mean))
        at = band.get_paths()[0].vertices
        edges = at[at[:, 0] == n_parties, 1]
        assert_allclose((edges.min(), edges.max()), (wanted.mean - wanted.half_width, wanted.mean + wanted.half_width))
    assert axes[0].get_xscale() == "log"
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["2", "4", "8", "16", "32", "64"]


def test_the_trade_off_has_a_point_per_condition_beside_the_published_one():
    (panel, _) = PLOTS["rq4_trade-off_paper"].figure.axes
    lines = {len(line.get_xdata()): line for line in panel.get_lines() if line.get_marker() == "s"}
    where = {"dataset": "mnist", "hyperparameters": "paper", "obfuscator": "pca"}
    accuracies = [np.mean(values_of("rq4", "KTI+TSL", n_components=n, **where)) for n in (4, 16, 64)]
    assert_allclose(np.array(lines[3].get_ydata(), dtype=float), accuracies)
    assert sorted(text.get_text() for text in panel.texts) == sorted(["4", "16", "64"] * 3)
    published = find_published(
        "tab:rq4-tradeoff-main-wide", name="KTI+TSL", dataset="mnist", obfuscator="umap", n_components=16
    )
    assert any(line.get_ydata()[0] == published.mean for line in panel.get_lines())
    labels = [text.get_text() for text in PLOTS["rq4_trade-off_paper"].figure.legends[0].get_texts()]
    assert labels == ["PCA", "kernel PCA", "UMAP", "published", "mean image"]


def test_figures_cope_with_what_is_not_there():
    assert result_figures({}) == []
    broken = failed(list(scored("rq1", Condition(), ["KTI"], 2)), lambda row: True)
    assert result_figures({"rq1": broken}) == []
    assert result_figures({"rq4": list(attacks(Condition(n_sources=None), 2))}) == []
    real = [row("rq3", Condition(n_anchors=100, n_sources=n), "KTI", 0, accuracy=0.5) for n in (10, 100, None)]
    (plot, *_) = [plot for plot in result_figures({"rq3": real}) if "quality" in plot.name]
    assert_allclose(plot.figure.axes[0].get_lines()[0].get_xdata(), [10, 100])
