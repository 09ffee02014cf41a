"""A pytest plugin for all tests here: settings, light keys, light choices, and codes recorded as they are raised."""

import functools
import importlib
import inspect
import os
from pathlib import Path

# Before NumPy is loaded: several processes at once run these tests, and threads of BLAS that wait for each other take
# several times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
IS_NIGHTLY = bool(os.environ.get("DATACOLLAB_NIGHTLY"))
N_CHANGES = 20_000 if IS_NIGHTLY else 200
"""How many hostile changes of each kind are tried."""

N_KILLS = 400 if IS_NIGHTLY else 15
"""How often each command is killed at a random moment."""
LIGHTEST_LOG2_N = 10
"""The least work that a file under a passphrase may ask for."""

settings.register_profile("datacollab", deadline=None, max_examples=12, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=200)
settings.load_profile("nightly" if IS_NIGHTLY else "datacollab")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def write(tmp_path):
    """Writes bytes, text or a table into a file of the test's folder, and gives its path."""

    def write(name, contents):
        path = tmp_path / name
        if hasattr(contents, "to_csv"):
            contents = contents.to_csv(index=False)
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    return write


@pytest.fixture(scope="session")
def real_data_dir():
    """Where the real data sets lie; tests that need them skip with a reason where they do not."""
    for place in (os.environ.get("DATACOLLAB_DATA"), ROOT.parent / "shared" / "data"):
        if place and Path(place).is_dir():
            return Path(place)
    pytest.skip("real data not found: set DATACOLLAB_DATA to a directory that holds it")


@pytest.fixture(scope="session", autouse=True)
def light_passphrases():
    """Let guessing a passphrase cost little in this process; `test_seals.py` sees what is shipped in another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.bundle._keys._LOG2_N", LIGHTEST_LOG2_N)
        yield


@pytest.fixture(scope="session", autouse=True)
def disks_are_not_waited_for():
    """Let the system write files when it likes: what a kill leaves is tried in other processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_are_made_once():
    """Keep the commands that Typer makes of a program, instead of making them for each run."""
    from typer import testing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", functools.cache(testing._get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def little_is_compiled():
    """Leave shap's functions as they are written, and keep UMAP's on the disk: to compile them takes seconds."""
    import numba

    compile_function = numba.njit

    def njit(*given, **options):
        if given and inspect.isfunction(given[0]):
            return njit(*given[1:], **options)(given[0])

        def decorate(function):
            if function.__module__.startswith("shap."):
                return function
            is_of_umap = function.__module__.startswith(("umap.", "pynndescent."))
            return compile_function(*given, **options | {"cache": True} if is_of_umap else options)(function)

        return decorate

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba, "njit", njit)
        yield


@pytest.fixture(scope="module")
def light_choices():
    """Let models that a party or an analyst chooses among have few trees and landmarks, if no option says how many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.analyst._choice._TREES", 20)
        patch.setattr("datacollab.analyst._choice.FEW_LANDMARKS", 80)
        patch.setattr("datacollab.analyst._choice.MANY_LANDMARKS", 160)
        patch.setattr("datacollab.own._personal_model.N_TREES", 10)
        yield


@pytest.fixture(scope="session", autouse=True)
def light_own_models():
    """Let the forest beside a common model of sums have few trees; give the options it has for users."""
    options = importlib.import_module("datacollab.own._combined_model")._TREES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.own._combined_model._TREES", options | {"n_estimators": 10})
        yield options


@pytest.fixture(scope="module")
def all_trees(light_own_models):
    """Let that forest have as many trees as for users, where its quality is judged or printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.own._combined_model._TREES", light_own_models)
        yield


@pytest.fixture(autouse=True, scope="module")
def documents_choose_lightly(request):
    """Let examples in docstrings and on pages choose among light models too; own models stay, for pages print them."""
    is_document = request.path.is_relative_to(ROOT / "src") or request.path.parent == ROOT / "docs"
    if is_document:
        request.getfixturevalue("light_choices")
    if is_document or not request.path.is_relative_to(ROOT / "tests"):
        request.getfixturevalue("all_trees")


SLOW_PAGES = [ROOT / "docs" / f"{name}.md" for name in ("explanations", "guide", "rows")]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave to the slow part the pages whose examples take seconds, and all that runs at night."""
    for item in items:
        if item.path in SLOW_PAGES or item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.slow)


RAISED = set()
"""Codes of refusals that were raised in this process; on the controller of several workers, in any of them."""


MARKS_OF_PARTS = {"slow and not nightly": [b"mark.slow"], "nightly": [b"mark.nightly"]}
"""What is written in files with tests of the part, by the expression that asks for it."""


def pytest_ignore_collect(collection_path, config):
    """Do not load, for the slow tests alone, a file that has none."""
    marks = MARKS_OF_PARTS.get(config.option.markexpr)
    if marks is None or not collection_path.is_file() or collection_path in SLOW_PAGES:
        return None
    is_marked_elsewhere = collection_path.is_relative_to(ROOT / "hub" / "tests")
    source = collection_path.read_bytes()
    return None if is_marked_elsewhere or any(mark in source for mark in marks) else True


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: slow by nature; left to `make test-all`")
    config.addinivalue_line(
        "markers", "nightly: slower still, as simulations and kills are; left to `make test-nightly`"
    )
    from datacollab.errors import ExchangeError

    made = ExchangeError.__init__

    def record(self, code, *arguments, **options):
        made(self, code, *arguments, **options)
        RAISED.add(code)

    ExchangeError.__init__ = record
    config.add_cleanup(lambda: setattr(ExchangeError, "__init__", made))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take over what a worker saw."""
    RAISED.update(getattr(node, "workeroutput", {}).get("raised_codes", ()))


def is_whole(config):
    """Whether all tests were asked for, or all but the slow ones."""
    if config.args_source is not config.ArgsSource.TESTPATHS or config.option.keyword:
        return False
    return config.option.markexpr in ("", "not slow") and not config.option.collectonly


def registered_codes(config):
    """Codes that the tests of a folder have to raise: all of them here, and in `hub` the hub's own."""
    from datacollab.plugins import all_codes
    from datacollab_hub import CODES

    if config.rootpath == ROOT:
        return set(all_codes())
    return set(CODES) if config.rootpath == ROOT / "hub" else set()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Hand a worker's codes over; after the whole suite, fail where no test raises a code of the registry."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["raised_codes"] = sorted(RAISED)
        return
    codes = registered_codes(config) if exitstatus == 0 and is_whole(config) else set()
    config.codes_never_raised = sorted(codes - RAISED)
    if config.codes_never_raised:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    never = getattr(config, "codes_never_raised", [])
    if never:
        terminalreporter.section("codes of refusals that no test raises")
        terminalreporter.write_line(", ".join(never))
