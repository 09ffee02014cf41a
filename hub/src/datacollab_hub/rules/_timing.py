"""Until when shares are taken."""

from __future__ import annotations

from datetime import UTC, date, datetime

from datacollab.errors import ExchangeError

__all__ = ["check_open"]


def check_open(deadline: date | None, now: float) -> None:
    """Refuse a share after the last day, which ends at midnight in UTC.

    Raises
    ------
    ExchangeError
        ``DEADLINE_PASSED``.
    """
    # One clock and one zone for all: by local times the day would end at several moments.
    if deadline is not None and datetime.fromtimestamp(now, UTC).date() > deadline:
        raise ExchangeError(
            "DEADLINE_PASSED",
            f"The project's deadline was the end of {deadline.isoformat()} (UTC), by the hub's clock. Ask its owner "
            "for a project file with a later one.",
        )
