"""Lines on what the project's rules made of entries that did not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._output import Report

__all__ = ["show_adjusted", "show_details"]


def show_adjusted(told: Mapping[str, Any], report: Report, *, details: bool) -> None:
    """Print one line, where anything was adjusted, or one for each column if these are wanted.

    Parameters
    ----------
    told : mapping of str to object
        What `Adjustments.to_dict` gave.
    report : Report
    details : bool
    """
    from ..exchange.project import adjusted_text

    if told["columns"]:
        report.line(f"Adjusted entries: {adjusted_text(told)}{'' if details else ' (--details)'}")
        if details:
            _show_columns(told, report)


def show_details(told: Mapping[str, Any], report: Report, *, details: bool) -> None:
    """Print what the one line of a release's summary leaves out, if it is wanted."""
    if told["columns"] and details:
        report.line()
        report.line("Adjusted entries, by column")
        _show_columns(told, report)


def _show_columns(told: Mapping[str, Any], report: Report) -> None:
    from ..exchange.project import adjusted_details

    for line in adjusted_details(told):
        report.line(f"  {line}")
