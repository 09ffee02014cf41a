"""What whoever waits is shown."""

import io
import time

import pytest
import rich.console

from datacollab.cli.kit import shown_progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    seconds = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])

    def forward(by):
        seconds[0] += by

    return forward


def test_without_a_terminal_long_work_prints_a_line_now_and_then(clock, capsys):
    with shown_progress(steps=4) as say:
        say("loading")
        assert capsys.readouterr() == ("", "")
        clock(30)
        say("first draw")
        assert capsys.readouterr() == ("", "30 s: first draw (about 90 s left)\n")
        clock(5)
        say("second draw")
        assert capsys.readouterr() == ("", "")
        clock(1000)
        say("drawing")
        assert capsys.readouterr() == ("", "1035 s: drawing (about 6 min left)\n")


def test_where_the_end_is_not_known_no_time_is_told_unless_a_share_is(clock, capsys):
    with shown_progress() as say:
        clock(25)
        say("T0: Procrustes")
    assert capsys.readouterr().err == "25 s: T0: Procrustes\n"
    with shown_progress() as say:
        clock(40)
        say("3 of 12: LTI", 0.2)
    assert capsys.readouterr().err == "40 s: 3 of 12: LTI (about 160 s left)\n"
    with shown_progress(quiet=True) as say:
        clock(1000)
        say("anything")
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_step_that_takes_long_is_named_once_and_then_how_long_it_takes(clock, capsys):
    with shown_progress(first="predicting") as say:
        clock(12)
        time.sleep(1.2)
        clock(12)
        time.sleep(1.2)
        say("writing")
    assert capsys.readouterr().err == "12 s: predicting\n24 s: the same\n"


def test_a_terminal_has_one_line_with_the_time_left(clock, monkeypatch):
    shown = io.StringIO()
    terminal = rich.console.Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr(rich.console, "Console", lambda stderr: terminal)
    with shown_progress(steps=4, first="loading") as say:
        say("first draw")
        clock(60)
        say("second draw")
    assert "loading" in shown.getvalue()
    assert "second draw" in shown.getvalue()
    assert "about 3 min left" in shown.getvalue()
