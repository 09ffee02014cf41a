"""Optional dependencies; cheap to import, as commands that need little should start at once."""

from __future__ import annotations

import importlib
from types import ModuleType

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
