"""Where the parties of a project stand."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PartyStatus"]


@dataclass(frozen=True, kw_only=True)
class PartyStatus:
    """Where a party stands.

    Attributes
    ----------
    party, fingerprint : str
    created : str or None
        When its share was made; None where there is none yet.
    n_rows, n_components : int or None
    exported : bool
        Whether a model or answers made of the share that is there lie in the outbox.
    """

    party: str
    fingerprint: str
    created: str | None = None
    n_rows: int | None = None
    n_components: int | None = None
    exported: bool = False
