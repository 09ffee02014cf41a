"""Pages from templates of the desk and of a role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse

from ...look import templates_in
from ._entrance import Session
from ._jobs import Jobs, Refusal

__all__ = ["Pages", "Step"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a role, as the list beside every page shows it.

    Attributes
    ----------
    path, name : str
    note : str
        How far it is, in few words.
    is_done : bool
    is_beside : bool
        Whether it is no step of the way, but may be taken beside it.
    """

    path: str
    name: str
    note: str = ""
    is_done: bool = False
    is_beside: bool = False


class Pages:
    """Renders templates of the desk and of one role.

    Parameters
    ----------
    session : Session
    jobs : Jobs
    templates : Path
        Of the role.
    title : callable
        What the desk is of, in words, by now.
    steps : callable
        The role's steps as they are now.
    """

    def __init__(
        self,
        session: Session,
        jobs: Jobs,
        templates: Path,
        title: Callable[[], str],
        steps: Callable[[], Sequence[Step]],
    ) -> None:
        self._environment = templates_in(templates, Path(__file__).parent / "templates")
        self._jobs, self._title, self._steps = jobs, title, steps
        self._environment.globals |= {"token": session.token}
        self._environment.globals["parts"] = self._environment.get_template("parts.html").module

    def page(self, template: str, *, path: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Answer with a page.

        Parameters
        ----------
        template : str
            Name of its file.
        path : str
            Of the step that it belongs to.
        status : int, default=200
        **context
            What the template shows.
        """
        rendered = self._environment.get_template(template).render(
            **context,
            path=path,
            desk_title=self._title(),
            steps=self._steps(),
            running=self._jobs.running,
            failed=self._failed(path, context),
            notice=self._notice(path),
        )
        return HTMLResponse(rendered, status_code=status)

    def _notice(self, path: str) -> str:
        last = self._jobs.last
        return last.notice if last is not None and last.is_done and last.where == path else ""

    def _failed(self, path: str, context: Mapping[str, Any]) -> Refusal | None:
        """Why the last work came to nothing, on the page that would show what came of it; whoever left has not seen."""
        last = self._jobs.last
        if last is None or not last.is_done or last.where != path or isinstance(context.get("refusal"), Refusal):
            return None
        return last.refusal
