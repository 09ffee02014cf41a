"""A fitted estimator of scikit-learn as bytes and back.

Compiled code believes what it finds in such an object.  So bytes that came from somebody else are read in a confined
process alone; see `isolated`.
"""

from __future__ import annotations

import warnings
import zipfile
from typing import Any

from .._validation import require
from ..errors import ExchangeError
from ._neighbours import rebuild_neighbour_tree
from ._parts import parts_of
from ._refusal import malformed, reason_of, too_large
from ._skops_archive import MOST_OUTLINE_BYTES, Archive, read_archive, write_archive

__all__ = ["estimator_from_bytes", "estimator_to_bytes"]

_FIT_ONLY = ("cv", "memory", "n_jobs", "random_state", "scoring")
"""Parameters that fitting alone uses, or that belong to the machine; their values may be objects of any type."""

_DROPPED_LOADERS = ("RandomGeneratorNode", "RandomStateNode")
_DROPPED_CLASSES = ("BallTree", "KDTree")
"""Rebuilt from the rows on loading: skops writes what is in them differently each time."""

_LIBRARIES = ("numpy", "scipy", "sklearn")
"""Whose types may be in an estimator."""

_NOTHING = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "null", "is_json": True}


def estimator_to_bytes(estimator: Any) -> bytes:
    """Write a fitted estimator; equal estimators give equal bytes.

    States of random generators and parameters of fitting alone are left out.  Of a search over parameters, the best
    estimator is written.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, or TOO_LARGE.
    """
    skops = require("skops.io", "exchange")
    estimator = getattr(estimator, "best_estimator_", estimator)
    try:
        written = skops.dumps(estimator, compression=zipfile.ZIP_STORED)
        # Numbers and names of files are long in what skops writes, and short in what is sent.
        archive = _canonical(read_archive(written, most_outline_bytes=8 * MOST_OUTLINE_BYTES))
        data = write_archive(archive)
        _types_of(data)
    # Skops and what it calls raise many kinds of errors for objects that it cannot take apart.
    except Exception as error:
        if getattr(error, "code", None) == "TOO_LARGE":
            raise
        reason = reason_of(error) if isinstance(error, ExchangeError) else f"{type(error).__name__} when it was written"
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"An estimator of type {type(estimator).__name__} cannot be sent ({reason}). Train one of scikit-learn's "
            "usual classifiers or regressors.",
        ) from None
    return data


def estimator_from_bytes(data: bytes) -> Any:
    """Read an estimator that this program's own user wrote; somebody else's only in a confined process.

    Raises
    ------
    ExchangeError
        TOO_LARGE, UNTRUSTED_TYPE or MODEL_MALFORMED.
    """
    skops = require("skops.io", "exchange")
    try:
        read_archive(data)
        with warnings.catch_warnings():
            # That the versions are near enough to one another was checked before.
            warnings.simplefilter("ignore")
            estimator = skops.loads(data, trusted=_types_of(data))
            for part in parts_of(estimator):
                _make_local(part)
                rebuild_neighbour_tree(part)
    except ExchangeError:
        raise
    except MemoryError:
        raise too_large("needs more memory than there is for it") from None
    # Skops, NumPy and scikit-learn raise many kinds of errors for damaged contents, and may quote them.
    except Exception as error:
        raise malformed(f"its estimator cannot be put together ({type(error).__name__})") from None
    return estimator


def _types_of(data: bytes) -> list[str]:
    """Types in an archive that skops does not know to be harmless, all of them of `_LIBRARIES`."""
    types: list[str] = require("skops.io", "exchange").get_untrusted_types(data=data)
    if any(name.partition(".")[0] not in _LIBRARIES for name in types):
        raise ExchangeError(
            "UNTRUSTED_TYPE",
            "The model holds objects of other libraries than scikit-learn, SciPy and NumPy. Do not use it, and ask the "
            "analyst.",
        )
    return types


def _make_local(part: Any) -> None:
    """Parameters that say how to compute rather than what are this machine's business."""
    for name, value in (("n_jobs", None), ("verbose", 0)):
        if name in vars(part):
            setattr(part, name, value)


def _canonical(archive: Archive) -> Archive:
    """The same contents with numbers and file names counted from one; skops takes addresses in memory."""
    done: dict[Any, Any] = {}
    files: dict[str, str] = {}

    def rewrite(node: Any, *, state: bool = False) -> Any:
        if isinstance(node, list):
            return [rewrite(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("__loader__") in _DROPPED_LOADERS or node.get("__class__") in _DROPPED_CLASSES:
            return dict(_NOTHING)
        number = node.get("__id__")
        if number in done:
            # Skops makes an object once; what it wrote of it a second time differs in the numbers of temporary parts.
            return done[number]
        is_object = node.get("__loader__") == "ObjectNode"
        new: dict[str, Any] = {}
        if number is not None:
            done[number] = new
            new["__id__"] = len(done)
        for key, value in node.items():
            if key == "__id__":
                continue
            if key == "file":
                new[key] = files.setdefault(value, f"{len(files) + 1}.npy")
            elif key == "content" and state and isinstance(value, dict):
                new[key] = {
                    name: dict(_NOTHING) if name in _FIT_ONLY else rewrite(item) for name, item in value.items()
                }
            else:
                new[key] = rewrite(value, state=is_object and key == "content")
        return new

    outline = rewrite(archive.outline)
    arrays = {new: archive.arrays[old] for old, new in files.items()}
    return Archive(outline=outline, arrays=arrays)
