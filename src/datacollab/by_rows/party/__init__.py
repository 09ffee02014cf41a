"""Rows, at a party: obfuscated, attacked, approved and shared; the analyst's model, and own models beside it."""

from ._row_share import Prepared, RowsAtParty
from ._rows_summary import CRITERIA, FIGURES, NamedTargets, ReleaseSummary, figure_text, limit_text, no_defence

__all__ = ["CRITERIA", "FIGURES", "NamedTargets", "Prepared", "ReleaseSummary", "RowsAtParty", "figure_text"]
__all__ += ["limit_text", "no_defence"]
