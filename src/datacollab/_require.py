"""Optional dependencies, and names that load on first use: commands that need little should start at once."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from .errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or raise a MissingExtraError that names the extra with it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs the package {module.partition('.')[0]!r}, which is not installed. "
            f"Install it with: pip install 'datacollab[{extra}]'"
        ) from error


def load_on_first_use(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``, which imports a name from its home, such as ``.party``, when asked for it.

    For names that bring large packages, where most users of the module need none of these.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name], module), name)

    return load
