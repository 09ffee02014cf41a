"""Of which attackers an upper end speaks: what they hold, in words."""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["attacker_class"]

_HOLDS = MappingProxyType(
    {
        "T0": "the share and public rows",
        "T1": "the share and some anchor rows",
        "T2": "the share and all anchor rows",
        "T2f": "all anchor rows and their representation",
        "T3": "collaboration representations and all anchor rows",
        "T4": "the file",
    }
)
_FROM_A_LIST = ("linkage", "re-identification", "open-world", "membership")


def attacker_class(level: str, metric: str) -> str:
    """What the attackers of a level hold who are measured by a metric, to be read after "whoever holds".

    Rows are linked to, and members told from, the records on a list of candidates, which the attacker has.
    """
    listed = " and a list of candidates" if metric.startswith(_FROM_A_LIST) else ""
    holds = _HOLDS[level].replace(" and ", ", ") if listed else _HOLDS[level]
    return f"{holds}{listed}"
