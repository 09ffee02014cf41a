"""Steps that only projects have whose parties share rows."""

from __future__ import annotations

from ...errors import AgreementError
from ..project import Project

__all__ = ["check_shares_rows"]


def check_shares_rows(project: Project) -> None:
    """Refuse a step that belongs to projects that share rows.

    Raises
    ------
    AgreementError
        If the parties share sums.
    """
    if project.sharing is not None:
        raise AgreementError(
            f"Project {project.name!r} shares sums, and this step is for projects that share rows: there is no map f_k "
            "and no row that leaves. `datacollab party check` and `share` show what would leave."
        )
