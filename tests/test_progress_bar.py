"""A bar says what is being done, how much of it is done, and how long it takes."""

import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import datacollab as dc
from datacollab.errors import MissingExtraError

pytest.importorskip("tqdm")


@pytest.fixture
def shown(capsys):
    """What a terminal shows, one state after the other, until now."""
    states = []

    def so_far():
        states.extend(line.strip() for line in re.split(r"[\r\n]", capsys.readouterr().err) if line.strip())
        return states

    return so_far


def test_counts_are_shown_with_the_time_left(shown):
    with dc.ProgressBar() as progress:
        progress(0, 4, "first")
        progress(3, 4, "last")
    first, last, *_, end = shown()
    assert re.search(r"\| 0/4 \[00:00, \? left\] first$", first)
    assert re.search(r"\| 3/4 \[00:0\d, 00:0\d left\] last$", last)
    assert re.search(r"\| 4/4 \[", end)


def test_steps_are_counted_where_it_is_said_how_many_there_are(shown):
    with dc.ProgressBar(n_steps=3) as progress:
        for step in ("one", "two", "three"):
            progress(step)
    assert any(re.search(r"1/3 .* two", state) for state in shown())
    assert re.search(r"3/3 .* three", shown()[-1])


def test_without_it_the_time_gone_is_shown(shown):
    with dc.ProgressBar() as progress:
        progress("looking")
    assert re.fullmatch(r"\[00:0\d\] looking:?", shown()[-1])


def test_what_is_interrupted_is_not_shown_as_done(shown):
    with pytest.raises(KeyboardInterrupt), dc.ProgressBar(n_steps=2) as progress:
        progress("one")
        raise KeyboardInterrupt
    assert not any("2/2" in state for state in shown())


def test_an_analyst_and_an_audit_tell_a_bar(shown):
    random = np.random.default_rng(0)
    rows, anchor = random.normal(size=(80, 4)), random.normal(size=(60, 4))
    parties = [dc.Party(name, dc.obfuscator("pca", 3)).fit(rows, rows[:, 0] > 0) for name in "ab"]
    shares = [party.share(anchor) for party in parties]
    with dc.ProgressBar() as progress:
        dc.Analyst([dc.LTI(3), dc.GEP(3)], LogisticRegression(), progress=progress).fit(shares)
    assert re.search(r"\| (\d+)/\1 \[", shown()[-1])
    with dc.ProgressBar() as progress:
        dc.audit(parties[0], rows, anchor, levels=["T1"], progress=progress, random_state=0)
    assert re.search(r"\| (\d+)/\1 \[.*T1: ", shown()[-1])


def test_without_tqdm_it_says_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingExtraError, match=r"datacollab\[progress\]"):
        dc.ProgressBar()


def test_a_widget_has_one_bar_and_the_words_beside_it(monkeypatch):
    pytest.importorskip("ipywidgets", reason="the extra test brings ipywidgets")
    notebook = pytest.importorskip("tqdm.notebook")
    displayed = []
    monkeypatch.setattr(notebook, "display", displayed.append)
    monkeypatch.setattr("tqdm.auto.tqdm", notebook.tqdm)
    with dc.ProgressBar() as progress:
        progress(1, 2, "one step")
        ((left, bar, right),) = (each.children for each in displayed)
        assert (left.value, bar.value, bar.max) == ("", 1, 2)
        # Spaces are of a width there that HTML keeps.
        assert re.fullmatch(r" 1/2 \[\d\d:\d\d, [\d:?]+ left\] one step(: )?", right.value.replace("\u2007", " "))


NOTEBOOK_WITHOUT_WIDGETS = """
import sys, types
sys.modules["ipywidgets"] = None
sys.modules["ipykernel.zmqshell"] = types.ModuleType("zmqshell")
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})
import datacollab as dc
with dc.ProgressBar() as progress:
    progress(1, 2, "one step")
"""


def test_a_notebook_without_widgets_shows_text_and_no_warning():
    # In a process of its own: tqdm decides when it is imported.
    # And not with warnings as errors, which it catches and hides.
    command = [sys.executable, "-W", "always", "-c", NOTEBOOK_WITHOUT_WIDGETS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\| 1/2 \[.*\] one step", done.stderr)
    assert "ipywidgets" not in done.stderr
