"""Playing commands for show: each a process of its own, in one folder, and all of them end with the play."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any

import typer

# Not every system has all three.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_GRACE = 10.0
"""Seconds that a process has to end before it is killed."""


@dataclass(frozen=True)
class Step:
    """A command: a note on its purpose, its words, and its standard input.

    A secret has no place among its words, which others can list. With ``is_shown`` its output is shown as it comes.
    """

    note: str
    words: tuple[str, ...]
    typed: str = field(default="", repr=False)
    is_shown: bool = False

    @property
    def line(self) -> str:
        """The command as one would type it."""
        return shlex.join(["datacollab", *self.words])


class Stage:
    """A new folder in which commands are played.

    Within the context, signals that end a program raise a ``KeyboardInterrupt``. The end of the context ends all
    processes that were begun in it, with those that they began.

    Parameters
    ----------
    folder : Path
        Made; nothing may be in it.
    quiet : bool, default=False
        Whether neither notes nor commands are printed.

    Raises
    ------
    ValueError
        If something is in the folder.
    """

    def __init__(self, folder: Path, *, quiet: bool = False) -> None:
        if folder.exists() and any(folder.iterdir()):
            raise ValueError(f"{folder} is not empty; choose another --output, or remove it.")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.quiet = quiet
        self._begun: list[subprocess.Popen[str]] = []
        self._is_busy = self._is_told_to_end = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Stage:
        """Take signals."""
        self._handlers = {number: signal.signal(number, self._end_on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes; no second signal interrupts that."""
        self._is_busy = True
        # All are told before one is waited for, so that they end at the same time.
        for process in self._begun:
            _send(process, process.terminate, "SIGTERM")
        for process in self._begun:
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                _send(process, process.kill, "SIGKILL")
                process.wait()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def say(self, text: str = "") -> None:
        """Print a line, unless nothing is to be printed."""
        if not self.quiet:
            typer.echo(text)

    def play(self, *steps: Step) -> list[str]:
        """Run commands, all at the same time; return the output of each, where it is not shown."""
        for step in steps:
            if step.note and not self.quiet:
                typer.secho(f"# {step.note}", dim=True)
            self.say(f"$ {step.line}")
        # All are begun before the first is waited for.
        processes = [self._begin(step, *self._places(step)) for step in steps]
        return [self._report_end(step, process) for step, process in zip(steps, processes, strict=True)]

    def serve(self, step: Step, log: Path) -> subprocess.Popen[str]:
        """Begin a command that goes on until the end of the play, and writes to a file."""
        if not self.quiet:
            typer.secho(f"# {step.note}", dim=True)
        self.say(f"$ {step.line} 2> {log.name}")
        with open(log, "w", encoding="utf-8") as file:
            return self._begin(step, file, subprocess.STDOUT)

    def _places(self, step: Step) -> tuple[int | None, int | None]:
        """Return where output and errors of a command go."""
        if step.is_shown:
            return (subprocess.DEVNULL if self.quiet else None), None
        return subprocess.PIPE, subprocess.PIPE

    def _begin(self, step: Step, out: int | IO[str] | None, errors: int | None) -> subprocess.Popen[str]:
        # A signal between a process's beginning and its name in the list would leave it behind.
        self._is_busy = True
        self._begun.append(
            subprocess.Popen(
                [sys.executable, "-m", "datacollab", *step.words],
                cwd=self.folder,
                stdin=subprocess.PIPE if step.typed else subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                text=True,
                # A group of its own, so that what it begins can be ended with it.
                start_new_session=True,
            )
        )
        self._is_busy = False
        # A signal in between was only noted.
        if self._is_told_to_end:
            raise KeyboardInterrupt
        return self._begun[-1]

    def _report_end(self, step: Step, process: subprocess.Popen[str]) -> str:
        printed, errors = process.communicate(step.typed or None)
        if process.returncode:
            said = f" It said: {errors.strip()}" if errors else ""
            raise ValueError(f"The step `{step.line}` failed; {self.folder} is as it left it.{said}")
        return printed or ""

    def _end_on_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_told_to_end = True
        if not self._is_busy:
            raise KeyboardInterrupt


def _send(process: subprocess.Popen[str], alone: Callable[[], None], name: str) -> None:
    """Send a signal to a process and those that it began; on systems without groups, to it alone."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, getattr(signal, name))
        else:
            alone()
