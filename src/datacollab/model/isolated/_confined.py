"""The confined process: it reads one model and rows from a pipe, and writes answers to another."""

from __future__ import annotations

import os
import sys
import warnings
from typing import IO, Any

import numpy as np

from ...bundle import arrays_to_bytes, bytes_to_arrays
from ...errors import ExchangeError, MissingExtraError
from .._refusal import reason_of
from ._confine import CannotConfineError, confine
from ._frames import read_frame, write_frame
from ._loaders import LOADERS, PRELOAD, Predictor

__all__ = ["main"]


def main(form: str) -> None:
    """Serve until the pipe is closed.

    Parameters
    ----------
    form : str
        Of the model; a key of `LOADERS`.
    """
    questions, answers = sys.stdin.buffer, _private_output()
    try:
        PRELOAD[form]()
        bytes_to_arrays(arrays_to_bytes({"rows": np.eye(2)}), what="A trial, which imports what rows need,")
        confine()
    except (CannotConfineError, ExchangeError, MissingExtraError) as error:
        kind = "unconfined" if isinstance(error, CannotConfineError) else "missing"
        write_frame(answers, {kind: str(error)})
        return
    write_frame(answers, {"confined": True})
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _serve(form, questions, answers)


def _private_output() -> IO[bytes]:
    """The pipe for answers, where nothing that a library prints can get into."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return answers


def _serve(form: str, questions: IO[bytes], answers: IO[bytes]) -> None:
    model: Predictor | None = None
    while True:
        try:
            facts, body = read_frame(questions)
        except EOFError:
            return
        except MemoryError:
            # Half of the question is still to come.
            write_frame(answers, _refused("TOO_LARGE", "takes more memory than is allowed"))
            return
        try:
            if model is None:
                model = LOADERS[form](body, facts)
                write_frame(answers, model.facts())
            else:
                write_frame(answers, {}, _answer(model, facts, body))
        except MemoryError:
            write_frame(answers, _refused("TOO_LARGE", "takes more memory than is allowed"))
        except ExchangeError as error:
            write_frame(answers, _refused(error.code, reason_of(error)))
        # An estimator that somebody else put together may raise anything.
        except Exception as error:
            write_frame(answers, _refused("MODEL_MALFORMED", f"it cannot be used ({type(error).__name__})"))


def _answer(model: Predictor, facts: dict[str, Any], body: bytes) -> bytes:
    rows = bytes_to_arrays(body, what="rows")["rows"]
    found = model.predict_proba(rows) if facts["ask"] == "predict_proba" else model.predict(rows)
    return arrays_to_bytes({"answer": np.ascontiguousarray(found)})


def _refused(code: str, reason: str) -> dict[str, Any]:
    return {"refused": code, "reason": reason}
