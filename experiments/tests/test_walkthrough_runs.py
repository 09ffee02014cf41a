"""Medians of what walkthroughs print."""

from pathlib import Path

import pytest

from datacollab_experiments.readings import walkthrough

PAGE = Path(__file__).parents[2] / "docs" / "walkthrough.md"


def test_figures_are_found_in_what_the_page_shows():
    shown = PAGE.read_text(encoding="utf-8")
    lines = walkthrough.summary([f"{shown}\nprocessor time: {seconds}\n" for seconds in (10, 30, 20)]).splitlines()
    assert len(lines) == 1 + len(walkthrough.FIGURES)
    assert lines[-1].split("(s)")[1].split() == ["20", "(10", "to", "30)"]


def test_a_figure_that_is_not_printed_is_missed():
    with pytest.raises(ValueError, match="accuracy, pooled"):
        walkthrough.summary(["nothing"])


def test_a_run_that_is_there_is_not_done_again(tmp_path, monkeypatch):
    (tmp_path / "run-1.txt").write_text("told", encoding="utf-8")
    monkeypatch.setattr(walkthrough.subprocess, "run", None)
    assert walkthrough.play(tmp_path / "run-1") == "told"
