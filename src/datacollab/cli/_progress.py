"""Progress of a command: one line that changes on a terminal, or else one now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import typer

EVERY = 10.0
"""Seconds between lines where there is no terminal: quick commands stay silent, and others never longer."""


class Say(Protocol):
    """Takes the step that begins now, and the part of the work that is done, from 0 to 1, where that is known."""

    def __call__(self, step: str, share: float | None = None) -> None: ...


@contextmanager
def shown_progress(quiet: bool = False, *, steps: int | None = None, first: str = "starting") -> Iterator[Say]:
    """Yield a function that shows the present step on stderr; with ``steps`` it knows the share that is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    if quiet:
        yield lambda step, share=None: None
        return
    # Standard output is for results, which a program may read.
    console = Console(stderr=True)
    start = time.monotonic()
    n_begun = 0

    def make_say(show: Callable[[str, float | None, str], None]) -> Say:
        def say(step: str, share: float | None = None) -> None:
            nonlocal n_begun
            if steps is not None:
                # A step more than was foreseen must not run over the end of the bar.
                share = min(1.0, n_begun / steps)
            n_begun += 1
            show(step, share, time_left(time.monotonic() - start, share))

        return say

    if not console.is_terminal:
        with _print_lines(start, first) as show_line:
            yield make_say(show_line)
        return
    columns = (
        *(SpinnerColumn(), TextColumn("{task.description:<60}"), BarColumn(20), TimeElapsedColumn()),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(first, total=None, left="")

        def show_bar(step: str, share: float | None, left: str) -> None:
            total = None if share is None else 1.0  # Without a total, the bar moves to and fro.
            # A step may be over before the bar is drawn by itself.
            bar.update(task, description=step, total=total, completed=share or 0.0, left=left, refresh=True)

        yield make_say(show_bar)


@contextmanager
def _print_lines(start: float, first: str) -> Iterator[Callable[[str, float | None, str], None]]:
    """Yield a function that prints the present step every ten seconds; a step that takes longer is named once."""
    lock = threading.Lock()
    ended = threading.Event()
    last = start
    present = (first, "")
    named = ""

    def show_if_due() -> None:
        nonlocal last, named
        now = time.monotonic()
        if now - last < EVERY or ended.is_set():
            return
        last = now
        step, left = present
        words = "the same" if step == named else step
        named = step
        typer.echo(f"{now - start:.0f} s: {words}{left and f' ({left})'}", err=True)

    def show_line(step: str, share: float | None, left: str) -> None:
        nonlocal present
        with lock:
            present = (step, left)
            show_if_due()

    # A thread looks as well: one step may take minutes, in which nothing is reported.
    def watch() -> None:
        while not ended.wait(1.0):
            with lock:
                show_if_due()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield show_line
    finally:
        ended.set()


def time_left(elapsed: float, share: float | None) -> str:
    """Say how long it will take if it goes on like that; nothing if that is unknown.

    Examples
    --------
    >>> time_left(30.0, 0.25), time_left(600.0, 0.5), time_left(30.0, None)
    ('about 90 s left', 'about 10 min left', '')
    """
    if not share:
        return ""
    left = elapsed * (1 - share) / share
    if left < 180:
        return f"about {left:.0f} s left"
    return f"about {left / 60:.0f} min left"
