"""Tables."""

from __future__ import annotations

from pathlib import Path

from .plan import Variant

RULES: dict[str, Variant] = {}


def write_report(folder: Path, pays: Path, target: Path) -> None:
    """Write."""
