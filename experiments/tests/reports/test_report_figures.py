import io
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose
from report_rows import all_rows, attacks, failed, row, scored

from datacollab_experiments.claims import find_published, interval
from datacollab_experiments.paper import BASELINES, METHODS, Condition
from datacollab_experiments.reports._drawing import render_figure, styles
from datacollab_experiments.reports._figures import result_figures
from datacollab_experiments.reports._picture import Picture, picture_figure

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


def test_time_figures_have_logarithmic_axes_and_slopes():
    (panel, _) = PLOTS["rq3_seconds-construct_paper"].figure.axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in panel.get_legend().get_texts()]
    assert labels == ["MPP (1.10)", "GEP (1.10)", "ODC (1.10)", "LTI (1.10)", "KTI (2.80)", "KTI+TSL (2.80)"]


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


def test_all_text_can_be_read_in_print():
    from matplotlib.text import Text

    for name in ("rq1_paper", "rq3_seconds-represent_paper", "rq4_trade-off_paper"):
        plot = PLOTS[name]
        plot.figure.draw_without_rendering()
        for text in plot.figure.findobj(Text):
            assert text.get_fontsize() >= 8 or not text.get_text()


def test_no_two_methods_look_the_same_in_grey():
    for names in ((*BASELINES, *METHODS), ("LTI", "KTI", *"abcdefghi")):
        look = styles(names)
        assert len({(style.marker, style.dashes, style.filled) for style in look.values()}) >= min(len(names), 5)
        assert len(set(look.values())) == len(names)
    rq1, rq2 = ("Local", "Local+Public", "Central", "MPP", "GEP", "ODC", "LTI", "KTI"), METHODS[4:]
    for names in (rq1, rq2):
        assert len({(style.marker, style.filled) for style in styles(names).values()}) == len(names)


def test_gep_can_be_seen_under_lti():
    (plot,) = result_figures({"rq1": list(scored("rq1", Condition(), ["GEP", "LTI"], 3))})
    gep, lti = plot.figure.axes[0].get_lines()
    assert gep.get_marker() == styles(["GEP"])["GEP"].marker
    assert gep.get_zorder() <= lti.get_zorder(), "LTI is drawn later, on top"
    assert gep.get_linewidth() > 2 * lti.get_linewidth()
    assert gep.get_markersize() > 2 * lti.get_markersize()


def test_figures_cope_with_what_is_not_there():
    assert result_figures({}) == []
    broken = failed(list(scored("rq1", Condition(), ["KTI"], 2)), lambda row: True)
    assert result_figures({"rq1": broken}) == []
    assert result_figures({"rq4": list(attacks(Condition(n_sources=None), 2))}) == []
    real = [row("rq3", Condition(n_anchors=100, n_sources=n), "KTI", 0, accuracy=0.5) for n in (10, 100, None)]
    (plot, *_) = [plot for plot in result_figures({"rq3": real}) if "quality" in plot.name]
    assert_allclose(plot.figure.axes[0].get_lines()[0].get_xdata(), [10, 100])


def test_one_seed_claims_no_interval():
    (plot,) = result_figures({"rq1": list(scored("rq1", Condition(), ["Local", "KTI", "mine"], 1))})
    assert plot.figure.axes[0].get_ylabel() == "accuracy, one seed, no interval"


def test_many_data_sets_fill_several_rows_of_panels():
    names = ["digits", "iris", "wine", "mnist"]
    rows = [row("rq1", Condition(dataset=name), "KTI", 0, accuracy=0.5) for name in names]
    (plot,) = result_figures({"rq1": rows})
    shown = [panel.get_title() for panel in plot.figure.axes if panel.get_visible()]
    assert shown == ["mnist", "digits", "iris", "wine"]


@pytest.mark.parametrize("file_format", ["svg", "png"])
def test_equal_rows_draw_equal_bytes(file_format):
    rows = {"rq1": list(scored("rq1", Condition(), ["Local", "KTI"], 3))}
    first, second = (render_figure(result_figures(rows)[0].figure, file_format) for _ in range(2))
    assert first == second
    assert b"Matplotlib" not in first
    if file_format == "svg":
        assert ElementTree.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"
        assert b"<dc:date>" not in first
    else:
        assert first.startswith(b"\x89PNG\r\n\x1a\n")


def test_the_style_of_the_user_changes_nothing():
    import matplotlib as mpl

    rows = {"rq1": list(scored("rq1", Condition(), ["KTI"], 3))}
    plain = render_figure(result_figures(rows)[0].figure, "svg")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "other", "lines.linewidth": 9}):
        assert render_figure(result_figures(rows)[0].figure, "svg") == plain
        assert mpl.rcParams["font.size"] == 30


def test_a_picture_shows_its_images_in_place():
    images = np.random.default_rng(0).uniform(size=(2, 3, 4, 5))
    figure = picture_figure(Picture("Title", ["originals", "PCA (PINV)"], images))
    assert len(figure.axes) == 6
    for axes, image in zip(figure.axes, images.reshape(6, 4, 5), strict=True):
        assert_allclose(axes.images[0].get_array(), image)
        assert axes.images[0].get_clim() == (0, 1)
    assert [figure.axes[0].get_ylabel(), figure.axes[3].get_ylabel()] == ["originals", "PCA (PINV)"]


def test_a_black_picture_is_black_and_a_white_one_white():
    from matplotlib.image import imread

    picture = Picture("t", ["r"], np.stack([np.zeros((8, 8)), np.ones((8, 8))])[np.newaxis])
    drawn = imread(io.BytesIO(render_figure(picture_figure(picture), "png")))[..., :3].mean(axis=2)
    middle = drawn[drawn.shape[0] * 2 // 3]
    assert (middle < 0.01).sum() > 50
    assert (middle > 0.99).sum() > 50
