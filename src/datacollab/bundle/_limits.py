"""How large a bundle may be."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """What a bundle is allowed to take; anything larger is refused before it is read.

    Attributes
    ----------
    total_bytes, member_bytes, manifest_bytes : int
        Of the whole file, of one member, and of the manifest.
    """

    total_bytes: int = 2 * 1024**3
    member_bytes: int = 2 * 1024**3
    manifest_bytes: int = 1024**2
