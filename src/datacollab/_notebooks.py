"""What a notebook shows of an estimator that learns secrets."""

from __future__ import annotations

from typing import Any

__all__ = ["FittedUnseen"]


class FittedUnseen:
    """Mixin before `BaseEstimator`: a notebook, which may be shared, shows parameters and nothing learnt."""

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        shown = super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        shown.clear()
        return shown
