"""The party's side of a confined process: started without secrets, given a time, and ended when it is up."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

from ...errors import ExchangeError
from .._refusal import malformed, reason_of, too_large
from ._frames import read_frame, write_frame

__all__ = ["MOST_SECONDS", "Worker"]

MOST_SECONDS = 300
"""That a process may take to start, to read a model, or to predict one batch of rows."""
_MOST_REASON = 300
_CODES = ("MODEL_MALFORMED", "TOO_LARGE", "UNTRUSTED_TYPE")
_START = (
    "import sys; sys.path.append({path!r}); "
    "from datacollab.model.isolated._confined import main; main({form!r})"
)  # fmt: skip


class Worker:
    """A confined process with one model in it.

    It is a program of its own, not a copy of this one: keys, f_k and rows are nowhere in its memory, and it inherits
    neither environment nor open files.

    Parameters
    ----------
    form : {"skops", "onnx"}
        Of the model.

    Raises
    ------
    ExchangeError
        OBJECTS_REFUSED, where this machine cannot confine a process; ONNX_UNSUPPORTED without onnxruntime.
    """

    def __init__(self, form: str) -> None:
        self._process = _program(form)
        self._close = weakref.finalize(self, _end, self._process)
        try:
            facts, _ = self._asked(None, b"", 0)
        except ExchangeError as error:
            raise _no_process(reason_of(error)) from None
        if facts != {"confined": True}:
            self.close()
            if "missing" in facts:
                raise ExchangeError("ONNX_UNSUPPORTED", str(facts["missing"]))
            raise _no_process(str(facts.get("unconfined", "it does not say that it is confined")))

    def ask(self, facts: dict[str, Any], body: bytes, *, most_answer: int) -> tuple[dict[str, Any], bytes]:
        """What the process answers.

        Parameters
        ----------
        facts : dict
        body : bytes
        most_answer : int
            Bytes that may come.

        Raises
        ------
        ExchangeError
            MODEL_MALFORMED or TOO_LARGE; the process is ended, unless it said so itself.
        """
        found, answer = self._asked(facts, body, most_answer)
        if "refused" in found:
            raise _refusal(found)
        return found, answer

    def close(self) -> None:
        """End the process."""
        self._close()

    @property
    def is_running(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def _asked(self, facts: dict[str, Any] | None, body: bytes, most_answer: int) -> tuple[dict[str, Any], bytes]:
        process, late = self._process, threading.Event()
        questions, answers = process.stdin, process.stdout
        assert questions is not None
        assert answers is not None

        def end() -> None:
            late.set()
            process.kill()

        alarm = threading.Timer(MOST_SECONDS, end)
        try:
            alarm.start()
            if facts is not None:
                write_frame(questions, facts, body)
            return read_frame(answers, most_body=most_answer)
        except (BrokenPipeError, EOFError):
            self.close()
            raise self._ended(late.is_set()) from None
        except ValueError:
            self.close()
            raise malformed("what its process answered is no answer") from None
        except BaseException as error:
            # Whatever interrupted this, an answer may still come, and would be taken for that to the next question.
            self.close()
            if isinstance(error, MemoryError):
                raise too_large("takes more memory than there is for it") from None
            raise
        finally:
            alarm.cancel()

    def _ended(self, late: bool) -> ExchangeError:
        if late:
            return too_large(f"took more than {MOST_SECONDS:g} seconds")
        code = self._process.returncode
        if code == -signal.SIGXCPU:
            return too_large("took more of the processor's time than is allowed")
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return malformed(f"it ended the process in which it was tried ({how})")


def _program(form: str) -> subprocess.Popen[bytes]:
    start = _START.format(path=str(Path(__file__).parents[3]), form=form)
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            start_new_session=True,
        )
    except (OSError, TypeError, ValueError) as error:
        raise _no_process(type(error).__name__) from None


def _no_process(reason: str) -> ExchangeError:
    """The error of a machine, not of a model."""
    return ExchangeError(
        "OBJECTS_REFUSED",
        f"Models made of objects are run in a process without files and network, and this machine could not start one "
        f"({reason}). Ask the analyst to export the model as numbers, or use Linux.",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:  # what was not yet written has no reader any more
                continue


def _refusal(facts: dict[str, Any]) -> ExchangeError:
    """The error that the process reports; it may have been taken over, so its words are not believed to be words."""
    code, reason = facts.get("refused"), facts.get("reason")
    if not isinstance(reason, str) or len(reason) > _MOST_REASON or not (reason.isascii() and reason.isprintable()):
        reason = "nothing that could be read"
    # In quotation marks: what somebody else wrote is not this program's word.
    reason = f"its process says {reason!r}"
    if code == "TOO_LARGE":
        return too_large(f"is too large: {reason}")
    error = malformed(reason)
    return ExchangeError(str(code), str(error)) if code in _CODES else error
