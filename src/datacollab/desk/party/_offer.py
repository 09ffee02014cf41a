"""A project that was looked at, and is not joined yet."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from ...exchange.project import Project
from ..web import Chosen

__all__ = ["Offer"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Offer:
    """A project that was looked at and is not joined yet.

    Attributes
    ----------
    project : Project
    file : Chosen
        A copy of the project file: what is joined is what was looked at.
    anchor : Chosen or None
    id : str
        Of this look and no other.
    """

    project: Project
    file: Chosen
    anchor: Chosen | None
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    def discard(self) -> None:
        """Remove the copies."""
        self.file.discard()
        if self.anchor is not None:
            self.anchor.discard()
