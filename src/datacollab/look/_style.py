"""The stylesheet."""

from __future__ import annotations

from pathlib import Path

__all__ = ["STYLE"]

STYLE = Path(__file__).parent / "static" / "pages.css"
"""A file, so that pages need no style of their own: the policy of their headers allows none."""
