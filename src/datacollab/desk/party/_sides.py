"""Whose predictions figures are of, in words."""

from __future__ import annotations

__all__ = ["SIDES"]

SIDES = {
    "pooled": "both together",
    "collaboration": "the collaboration's model",
    "alone": "you and the public rows",
    "own": "you alone",
    "learned": "learned from answers",
}
