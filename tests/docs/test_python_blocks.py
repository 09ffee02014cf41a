"""What the documents tell to type is what the programs take, and their Python runs where there is what it speaks of."""

import functools
import operator
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from unittest import mock

import joblib
import numpy as np
import pytest
import typer
from bent_views import nonlinear_views
from blocks import ROOT, block_of, blocks, words
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge
from tiny import tiny

import datacollab as dc
import datacollab_experiments.paper
from datacollab.analyst import BaseIntegrator
from datacollab.cli import app
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


LANGUAGES = {"console", "json", "pycon", "python", "text", "toml", "yaml"}
PROGRAM = typer.main.get_command(app)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
TYPED = sorted({line for block in blocks("console") for line in block.typed if words(line)})


def test_there_is_no_block_of_another_kind():
    """Doctests, commands, Python, pages of the site; and files that tests of their formats read."""
    found = {block.language for block in blocks() if not block.language.startswith("{")}
    assert found <= LANGUAGES


def typed_by(*programs):
    return [line for line in TYPED if words(line)[0].rpartition("/")[2] in programs]


def check_typed(line):
    """Commands, options and arguments are such as the program takes."""
    known = {"$H": "datacollab hub", "$D": "--data FOLDER", "$(date -I)": "DATE"}
    for variable, value in known.items():
        line = line.replace(variable, value)
    _, *arguments = words(line)
    command, path = PROGRAM, []
    while arguments and arguments[0] in getattr(command, "commands", {}):
        path.append(arguments.pop(0))
        command = command.commands[path[-1]]
    is_abbreviated = arguments[-1:] == ["..."]
    arguments = arguments[:-1] if is_abbreviated else arguments
    context = command.context_class(command, info_name=" ".join(path))
    given, left, _ = command.make_parser(context).parse_args(list(arguments))
    assert not left, f"{' '.join(path)} takes no {left}"
    if getattr(command, "commands", None) is None and not is_abbreviated:
        missing = [each.name for each in command.params if each.required and given.get(each.name) is None]
        assert not missing, f"{' '.join(path)} wants {missing} too"


def test_the_program_has_such_commands_and_options():
    for line in typed_by("datacollab", "$H"):
        try:
            check_typed(line)
        except Exception as error:
            error.add_note(line)
            raise


def test_extras_that_are_installed_and_targets_that_are_made_exist():
    for line in typed_by("pip"):
        for named in re.findall(r"(?:datacollab|\.)\[([\w,]+)\]", line):
            assert set(named.split(",")) <= EXTRAS.keys()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in typed_by("make"):
        for target in words(line)[1:]:
            assert re.search(rf"^{re.escape(target)}:", makefile, flags=re.MULTILINE), target


def options_by_program():
    """The options that are typed after each benchmark's name."""
    found = {}
    for line in typed_by("python"):
        _, *arguments = words(line)
        n_named = 2 if arguments[0] == "-m" else 1
        if arguments[:2] != ["-m", "datacollab"]:
            options = found.setdefault(tuple(arguments[:n_named]), set())
            options |= {each for each in arguments[n_named:] if each.startswith("-")}
    return found


OPTIONS = options_by_program()


@pytest.mark.slow
@pytest.mark.parametrize("named", OPTIONS, ids=" ".join)
def test_modules_and_scripts_have_such_options(named):
    environment = {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *named, "--help"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for option in sorted(OPTIONS[named]):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", done.stdout), option


def test_every_line_is_of_a_program_that_these_tests_know():
    elsewhere = {  # systems' own, and those of other projects, which tests of deployment have
        *("cd", "cp", "export", "for", "install", "python3", "rm", "sed"),
        *("systemctl", "useradd", "userdel", "(umask", "docker"),
    }
    known = {"datacollab", "$H", "pip", "make", "python", *elsewhere}
    assert {words(line)[0].rpartition("/")[2] for line in TYPED} <= known
