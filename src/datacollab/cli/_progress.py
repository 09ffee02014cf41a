"""What is going on: one line that changes on a terminal, or else one now and then."""

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
    """Takes what begins now, and how much of the work is done, from 0 to 1, where that is known."""

    def __call__(self, step: str, share: float | None = None) -> None: ...


@contextmanager
def shown_progress(quiet: bool = False, *, steps: int | None = None, first: str = "starting") -> Iterator[Say]:
    """Yield what takes a line on what is going on, and shows it on stderr; with ``steps`` it knows the share."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console, start, begun = Console(stderr=True), time.monotonic(), 0
    if quiet:
        yield lambda step, share=None: None
        return

    def said(show: Callable[[str, float | None, str], None]) -> Say:
        def say(step: str, share: float | None = None) -> None:
            nonlocal begun
            share = share if steps is None else min(1.0, begun / steps)
            begun += 1
            show(step, share, time_left(time.monotonic() - start, share))

        return say

    if not console.is_terminal:
        with _lines(start, first) as show_line:
            yield said(show_line)
        return
    columns = (
        *(SpinnerColumn(), TextColumn("{task.description:<60}"), BarColumn(20), TimeElapsedColumn()),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(first, total=None, left="")

        def show_bar(step: str, share: float | None, left: str) -> None:
            total = None if share is None else 1.0
            # A step may be over before the bar is drawn by itself.
            bar.update(task, description=step, total=total, completed=share or 0.0, left=left, refresh=True)

        yield said(show_bar)


@contextmanager
def _lines(start: float, first: str) -> Iterator[Callable[[str, float | None, str], None]]:
    """Yield what prints a line every ten seconds, of what goes on; a step that takes longer is named once."""
    lock, ended, last, now_on, named = threading.Lock(), threading.Event(), start, (first, ""), ""

    def show(now: float) -> None:
        nonlocal last, named
        last, (step, left) = now, now_on
        said = "the same" if step == named else step
        named = step
        typer.echo(f"{now - start:.0f} s: {said}{left and f' ({left})'}", err=True)

    def show_line(step: str, share: float | None, left: str) -> None:
        nonlocal now_on
        with lock:
            now_on = step, left
            if (now := time.monotonic()) - last >= EVERY:
                show(now)

    def watch() -> None:
        while not ended.wait(1.0):
            with lock:
                if (now := time.monotonic()) - last >= EVERY and not ended.is_set():
                    show(now)

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
    return f"about {left:.0f} s left" if left < 180 else f"about {left / 60:.0f} min left"
