"""How the gallery treats examples: in which order, and what it does with those that end early."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

_EXIT = sys.exit


class ReadingOrder:
    """Sort examples by the numbers in their names, whether they are plotted or played."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, name: str) -> str:
        """What to sort a file of this name by."""
        return name.partition("_")[2]


def refuse_exits(gallery: dict[str, Any], example: str, when: str) -> None:
    """Make an error of `sys.exit` in an example, which would end the whole build, and in silence."""

    def refuse(status: object = None) -> NoReturn:
        raise RuntimeError(f"{example} ends early with {status!r}; install what it needs, in the extra docs")

    sys.exit = refuse if when == "before" else _EXIT
