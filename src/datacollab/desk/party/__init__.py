"""A party's desk: choose a table, look at what would leave, approve it by name, install what comes back, predict."""

from ._desk import PartyDesk
from ._party_app import party_app

__all__ = ["PartyDesk", "party_app"]
