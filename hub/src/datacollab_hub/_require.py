"""Dependencies that only some of the hub's users need."""

from __future__ import annotations

import importlib
from types import ModuleType

from datacollab.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import a dependency, or say which extra of this distribution brings it.

    Raises
    ------
    MissingExtraError
        When the module is not installed.
    """
    try:
        # By its name at run time: a member's machine has none of the server's packages.
        return importlib.import_module(module)
    except ImportError as error:
        # No release has it: without the path, the name would be looked up in a public registry.
        raise MissingExtraError(
            f"This needs the package {module.partition('.')[0]!r}, which is not installed. "
            f"In a copy of the repository, run: pip install './hub[{extra}]'"
        ) from error
