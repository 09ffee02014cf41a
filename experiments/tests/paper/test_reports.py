import numpy as np
import pytest
from matplotlib.collections import PathCollection
from numpy.testing import assert_allclose
from trials import as_dataset, comparison, diabetes

from datacollab_experiments.paper import alignment_figure, disagreement, score_figure

CLASSIFIED = {"Local": [0.501, 0.503], "LTI": [0.611, 0.613], "KTI+TSL": [0.725, 0.731], "Central": [0.90, 0.91]}


def test_parties_that_agree_do_not_disagree(rng):
    rows = rng.normal(size=(50, 3))
    assert disagreement({"a": rows, "b": rows.copy(), "c": rows.copy()}) < 1e-30


@pytest.mark.parametrize("n_parties", [2, 3, 50])
def test_unrelated_parties_disagree_as_much_as_their_number_allows(rng, n_parties):
    unrelated = {k: rng.normal(size=(5000, 2)) for k in range(n_parties)}
    assert_allclose(disagreement(unrelated), (n_parties - 1) / n_parties, atol=0.02)


def test_opposite_parties_disagree_wholly(rng):
    rows = rng.normal(size=(50, 3))
    assert_allclose(disagreement({"a": rows, "b": -rows}), 1.0)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_score_figure_shows_means_and_intervals(task):
    both = comparison(CLASSIFIED, task)
    axes = score_figure(both).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(CLASSIFIED)
    assert both.measure in axes.get_xlabel()
    assert "95 % interval of 2 trials" in axes.get_xlabel()
    drawn = [container.lines[0].get_xdata()[0] for container in axes.containers]
    assert_allclose(drawn, [both.interval(name)[0] for name in CLASSIFIED])
    (bar,) = axes.containers[1].lines[2]
    low, high = bar.get_segments()[0][:, 0]
    assert_allclose([(low + high) / 2, (high - low) / 2], both.interval("LTI"))
    # The first method is on top.
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


@pytest.fixture
def fast_umap(monkeypatch):
    """PCA in place of UMAP, whose first fit compiles for long; the test of the command draws with UMAP itself."""
    from sklearn.decomposition import PCA

    monkeypatch.setattr(
        "datacollab_experiments.paper._trial.obfuscator", lambda kind, n_components, **options: PCA(n_components)
    )


def panels_of(figure):
    return [([c for c in axes.collections if isinstance(c, PathCollection)], axes.get_title()) for axes in figure.axes]


@pytest.mark.usefixtures("fast_umap")
def test_the_alignment_figure_of_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([3, 5, 8, 9], 150)
    X = rng.normal(size=(600, 5)) + y[:, np.newaxis]
    figure = alignment_figure(as_dataset("blobs", "classification", X, y), 1)
    panels = panels_of(figure)
    assert [title.splitlines()[0] for _, title in panels] == ["Intermediate", "KTI", "KTI+TSL", "KTI+TSL+Center"]
    for clouds, title in panels:
        assert [len(cloud.get_offsets()) for cloud in clouds] == [60, 60, 60]
        assert title.splitlines()[1].startswith("parties disagree by ")
        colours = {tuple(colour) for cloud in clouds for colour in cloud.get_facecolors()}
        assert len(colours) == 3
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["party-0", "party-1", "party-2", "class 3", "class 5", "class 8"]


@pytest.mark.usefixtures("fast_umap")
def test_the_alignment_figure_of_a_regression_has_one_scale_for_all_parties():
    data = diabetes()
    figure = alignment_figure(data)
    panels = panels_of(figure)
    assert len(panels) == 4
    limits = {cloud.get_clim() for clouds, _ in panels for cloud in clouds}
    assert limits == {(data.y.min(), data.y.max())}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["party-0", "party-1", "party-2"]
