"""The analyst's desk: shares in, how far anchors agree, candidates with intervals, the model's card, models out."""

from ._analyst_app import AnalystDesk, analyst_app

__all__ = ["AnalystDesk", "analyst_app"]
