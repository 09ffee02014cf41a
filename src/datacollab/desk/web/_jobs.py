"""Work that takes its time, one piece at a time, and how refusals are shown."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from ...errors import CODES, DataCollabError, ExchangeError

BUG = "BUG"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A refusal, with its code as the commands print it, and a remedy."""

    code: str
    message: str
    remedy: str = ""

    @property
    def status(self) -> int:
        """Status of the HTTP answer."""
        if self.code == BUG:
            return 500
        return 422


def refusal_of(error: BaseException) -> Refusal:
    """Put an error into words, as the commands do.

    Examples
    --------
    >>> from datacollab.errors import ExchangeError
    >>> refusal_of(ExchangeError("NOT_SHARED", "Party 'a' has not shared.")).remedy
    'Run `datacollab party share` first.'
    >>> refusal_of(KeyError("an entry of the table")).message
    'A KeyError that should not happen. Nothing was sent.'
    """
    if isinstance(error, ExchangeError):
        return Refusal(code=error.code, message=str(error), remedy=CODES[error.code].remedy)
    if isinstance(error, DataCollabError | ValueError | OSError):
        return Refusal(code=type(error).__name__, message=str(error))
    # Words of an error that nobody foresaw may quote data.
    return Refusal(code=BUG, message=f"A {type(error).__name__} that should not happen. Nothing was sent.")


_LINES = 12
"""Lines of the work that its page shows, the last ones."""


@dataclass(frozen=True, eq=False)
class Question:
    """A question of a piece of work; its id is drawn anew, so that nobody answers one that they were not shown."""

    about: Any
    id: str = field(default_factory=lambda: secrets.token_hex(16))


class Job:
    """One piece of work."""

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self.where = where
        self.lines: deque[str] = deque(maxlen=_LINES)
        self.share: float | None = None
        self.question: Question | None = None
        self.result: Any = None
        self.refusal: Refusal | None = None
        self.notice = ""
        self._begun = time.monotonic()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._done = threading.Event()
        self._news = threading.Event()
        self._lock = threading.Lock()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    @property
    def seconds(self) -> float:
        """Seconds since it was begun."""
        return time.monotonic() - self._begun

    def say(self, step: str, share: float | None = None) -> None:
        """Name the step that begins now, and the part of the work that is done."""
        self.lines.append(step)
        self.share = share

    def ask(self, about: Any) -> Any:
        """Wait for somebody's answer; called by the work itself."""
        with self._lock:
            self.question = Question(about)
            self._news.set()
        return self._answers.get()

    def answer(self, answer: Any, question_id: str) -> None:
        """Answer the question that the work waits for."""
        with self._lock:
            if self.question is None or self.question.id != question_id:
                raise ExchangeError(
                    "NOT_APPROVED",
                    f"{self.name}: what was shown to you does not wait for an answer any more, or something else does "
                    "by now. Look at the page again.",
                )
            self.question = None
            self._news.clear()
            self._answers.put(answer)

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended or asks something, and no longer than this; return whether it has."""
        return self._news.wait(seconds)

    def run(self, work: Callable[[Job], Any], at_end: Callable[[], None]) -> None:
        """Do the work, and keep its result or the refusal."""
        try:
            try:
                self.result = work(self)
            finally:
                at_end()
        # In a thread of its own: an error that is let go would be lost, and the page would wait for ever.
        except BaseException as error:
            self.refusal = refusal_of(error)
        finally:
            self._done.set()
            self._news.set()


class Jobs:
    """One piece of work at a time; the last one stays to be looked at."""

    def __init__(self) -> None:
        self.last: Job | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> Job | None:
        """The piece of work that has not ended; None if there is none."""
        last = self.last
        if last is None or last.is_done:
            return None
        return last

    def question_about(self, kind: type) -> Question | None:
        """Return the question of the work that has not ended, if it is about something of this kind."""
        running = self.running
        if running is None:
            return None
        question = running.question
        if question is None or not isinstance(question.about, kind):
            return None
        return question

    def start(
        self, name: str, where: str, work: Callable[[Job], Any], *, at_end: Callable[[], None] = lambda: None
    ) -> Job:
        """Begin a piece of work in a thread of its own."""
        with self._lock:
            # Two at a time could open a folder whose lock the other holds, or share twice.
            if self.running is not None:
                at_end()
                raise ExchangeError(
                    "BUSY", f"This desk is at work: {self.running.name}. Wait until it has ended, or answer it."
                )
            job = self.last = Job(name, where)
        # Commands may be killed at any moment, and so may this: the folder keeps the old or the new state.
        threading.Thread(target=job.run, args=(work, at_end), name="desk", daemon=True).start()
        return job
