"""Data collaboration analysis: one model over several parties' private tables, in a single exchange.

The everyday names are here; they load on first use, so that ``import datacollab`` and ``datacollab --help`` are quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "DataCollabError": "errors",
}
_ROOMS = ("datasets", "errors")

__all__ = ["__version__", *_ROOMS, *_HOME]

if TYPE_CHECKING:
    from . import errors as errors
    from .errors import DataCollabError as DataCollabError


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
