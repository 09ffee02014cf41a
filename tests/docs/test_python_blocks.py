"""Blocks of Python that are no doctests, as they stand in the documents, where there is what they speak of."""

import functools
import operator
from dataclasses import replace
from unittest import mock

import joblib
import numpy as np
import pytest
from bent_views import nonlinear_views
from blocks import block_of, blocks
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge
from tiny import tiny

import datacollab as dc
import datacollab_experiments.paper
from datacollab.analyst import BaseIntegrator
from datacollab.model import SENDABLE
from datacollab_experiments.paper import read_results

BEGINNINGS = {
    "from dask.distributed import Client": "cluster.md",
    "parts = [dask.delayed(maker.part)": "cluster.md",
    "from sklearn.ensemble import HistGradientBoostingClassifier": "exchange-rows.md",
    'with joblib.parallel_config(backend="dask"):': "experiments.md",
    "import datacollab as dc\nimport torch": "gpu.md",
    "# my_module.py": "experiments.md",
    "import numpy as np\n\nfrom datacollab.datasets": "experiments.md",
}


def run(beginning, *changes, **given):
    """Run a block; the names that there are then."""
    text = block_of(BEGINNINGS[beginning], beginning).text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    exec(compile(text, BEGINNINGS[beginning], "exec"), given)
    return given


def test_these_are_all_of_them():
    """Of those in CONTRIBUTING and on one-shot methods, the experiments' tests make a method each."""
    tried = ("CONTRIBUTING.md", "oneshot.md")
    found = [each for each in blocks("python") if ">>>" not in each.text and each.document not in tried]
    assert len(found) == len(BEGINNINGS)
    for beginning, document in BEGINNINGS.items():
        assert block_of(document, beginning) in found


@pytest.fixture
def dask_client():
    distributed = pytest.importorskip("dask.distributed")
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


@pytest.mark.slow
def test_a_fit_on_a_cluster(monkeypatch, dask_client):
    asked = []
    monkeypatch.setattr(
        "dask.distributed.Client", lambda address, security: asked.append((address, security)) or dask_client
    )
    views, latent = nonlinear_views(300, widths=(18, 17, 16))
    shares = [
        dc.Share(
            party=party,
            representation=A[:50],
            anchor_representation=A,
            target=latent[:50, 1],
            anchor_target=latent[:, 0],
        )
        for party, A in views.items()
    ]
    found = run(
        "from dask.distributed import Client", anchors=views, anchor_target=latent[:, 0], shares=shares, h=Ridge()
    )
    ((address, security),) = asked
    assert address == "tls://scheduler.analyst.example:8786"
    assert security.require_encryption
    alone = dc.KTI(16, solver="nystroem").fit(views, y=latent[:, 0])
    assert_allclose(found["integrator"].objective_, alone.objective_, rtol=1e-6)
    assert_allclose(found["collaboration"].integrator_.objective_, alone.objective_, rtol=1e-6)


def test_sums_of_a_party_on_a_cluster():
    """With whole numbers in place of parts: `tests/by_sums` adds parts up."""
    dask = pytest.importorskip("dask")
    frame = mock.Mock(to_delayed=lambda: [dask.delayed(each) for each in (range(3), range(5))])
    given = {
        "maker": mock.Mock(part=sum),
        "folder": mock.Mock(),
        "approve": None,
        "functools": functools,
        "operator": operator,
    }
    run("parts = [dask.delayed(maker.part)", dask=dask, frame=frame, **given)
    given["folder"].share.assert_called_once_with(13, approve=None)


def test_an_analyst_of_files_in_python():
    """What it does with methods and models, the folder's own tests tell; here, that it takes such."""
    with mock.patch("datacollab.steps.analyst.AnalystFolder", autospec=True) as folder:
        run("from sklearn.ensemble import HistGradientBoostingClassifier")
    folder.assert_called_once_with("analyst")
    (integrators, estimator), _ = folder.return_value.integrate.call_args
    assert all(isinstance(each, BaseIntegrator) for each in integrators)
    assert type(estimator).__name__ in SENDABLE
    folder.return_value.export.assert_called_once_with()


@pytest.mark.nightly
@pytest.mark.usefixtures("dask_client")
def test_experiments_on_a_cluster(tmp_path):
    experiment = replace(tiny(tmp_path), seeds=(0,))
    given = {"experiments": [experiment], "results": tmp_path / "results.sqlite"}
    given |= {"joblib": joblib, "datacollab_experiments": datacollab_experiments}
    run('with joblib.parallel_config(backend="dask"):', **given)
    (rows,) = read_results(tmp_path).rows.values()
    assert rows
    assert not any(row.error for row in rows)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_fit_on_a_graphics_processor(device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no graphics processor")
    views, _ = nonlinear_views(200, widths=(20, 17, 16))
    rows = torch.asarray(views["a"][:5], device=device)
    beginning = "import datacollab as dc\nimport torch"
    found = run(beginning, ('"cuda"', f'"{device}"'), A_a=views["a"], A_b=views["b"], rows_on_cuda=rows)
    integrator = found["integrator"]
    assert integrator.target_.device.type == device
    alone = dc.KTI(n_components=16, center=True).fit({name: views[name] for name in ("a", "b")})
    assert_allclose(integrator.objective_, alone.objective_, rtol=1e-6)


def test_a_method_of_ones_own(tmp_path):
    found = run("# my_module.py")
    views, _ = nonlinear_views(60)
    assert_allclose(found["Mine"](3).fit(views).target_, dc.LTI(3).fit(views).target_)


def test_a_data_set_of_ones_own(monkeypatch, tmp_path):
    np.save(tmp_path / "X.npy", np.eye(3))
    np.save(tmp_path / "y.npy", np.arange(3))
    monkeypatch.chdir(tmp_path)
    made = run("import numpy as np\n\nfrom datacollab.datasets")["load_mine"]()
    assert isinstance(made, dc.datasets.Dataset)
    assert {"X", "y", "task", "name"} <= made.keys()
    assert made.X.shape == (3, 3)
    assert made.task == "classification"
