"""Running an ONNX graph: of one's own, or of somebody else's in a confined process."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, require
from ._refusal import malformed

__all__ = ["BATCH", "INPUT", "graph_session", "run_graph"]

INPUT = "representation"
BATCH = 1024
"""Rows that are given to a graph at once."""


def graph_session(data: bytes) -> Any:
    """The runtime's form of a graph, for one thread.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    MissingExtraError
        Without the extra `onnx`.
    """
    runtime = require("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    # The runtime's errors have no common type.
    except Exception as error:
        raise malformed(f"its ONNX form cannot be prepared ({type(error).__name__})") from None


def run_graph(session: Any, rows: FloatArray, output: int, classes: NDArray[Any] | None = None) -> NDArray[Any]:
    """One of the outputs of a graph for rows.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
    rows : ndarray of shape (n_rows, n_intermediate)
    output : int
        0 for predictions, 1 for probabilities.
    classes : ndarray of shape (n_classes,), optional
        Of whose type predictions are to be.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    try:
        names = [session.get_outputs()[output].name]
        batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)] or [rows]
        found = np.concatenate([np.asarray(session.run(names, {INPUT: each})[0]) for each in batches])
    # The runtime's errors have no common type.
    except Exception as error:
        raise malformed(f"its ONNX form cannot be run ({type(error).__name__})") from None
    if output != 0:
        return found
    found = found.reshape(len(rows))
    if classes is None:
        return found.astype(np.float64)
    return found.astype(str).astype(classes.dtype) if classes.dtype.kind in "OU" else found.astype(classes.dtype)
