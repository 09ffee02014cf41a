"""A party's desk: choose a table, look at the share, approve it by name, install the model, predict."""

from ._desk import PartyDesk
from ._party_app import party_app

__all__ = ["PartyDesk", "party_app"]
