"""Pages from templates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from fastapi.responses import HTMLResponse
from jinja2 import Environment
from markupsafe import Markup, escape

from datacollab.look import templates_in

from ..rules import Person
from ..service import Hub

_KIB = 1024
_ROLES = {"owner": "the owner", "analyst": "the analyst", "party": "a party", "auditor": "an auditor"}


class _Signed(Protocol):
    @property
    def person(self) -> Person: ...
    @property
    def token(self) -> str: ...


def show(
    template: str,
    hub: Hub,
    visit: _Signed | None,
    *,
    status: int = 200,
    project: dict[str, Any] | None = None,
    here: str = "",
    **context: Any,
) -> HTMLResponse:
    """Answer with a page.

    Parameters
    ----------
    template : str
        Name of its file.
    hub : Hub
    visit : optional
        Whose page it is; None where nobody is signed in.
    status : int, default=200
    project : dict, optional
        That it is about, as `project_status` tells of it.
    here : str
        Of the project's pages, the one that it is.
    **context
        Values of the template.
    """
    rendered = (
        _environment()
        .get_template(template)
        .render(**context, host=urlsplit(hub.settings.url).netloc, visit=visit, project=project, here=here)
    )
    return HTMLResponse(rendered, status_code=status)


@cache
def _environment() -> Environment:
    environment = templates_in(Path(__file__).parent / "templates")
    environment.filters |= {
        "mark_commands": mark_commands,
        "day": day,
        "moment": moment,
        "role_words": role_words,
        "size": size,
    }
    # Macros that all pages use.
    environment.globals["parts"] = environment.get_template("parts.html").module
    return environment


def moment(seconds: int | None) -> Markup | str:
    """A time by the hub's clock.

    Examples
    --------
    >>> str(moment(1_800_000_000))
    '<time datetime="2027-01-15T08:00:00Z">15 January 2027, 08:00 UTC</time>'
    """
    if seconds is None:
        return "not known"
    then = datetime.fromtimestamp(seconds, UTC)
    words = f"{then.day} {then:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(then.strftime("%Y-%m-%dT%H:%M:%SZ"), words)


def day(iso: str) -> Markup:
    """A day, in words.

    Examples
    --------
    >>> str(day("2027-01-31"))
    '<time datetime="2027-01-31">31 January 2027</time>'
    """
    then = date.fromisoformat(iso)
    return Markup('<time datetime="{}">{} {:%B %Y}</time>').format(iso, then.day, then)


def role_words(roles: Sequence[str]) -> str:
    """Describe roles in words.

    Examples
    --------
    >>> role_words(["owner", "party"])
    'the owner and a party'
    """
    return " and ".join(_ROLES[role] for role in roles)


def mark_commands(text: str) -> Markup:
    """A sentence in which commands stand between backticks.

    Examples
    --------
    >>> str(mark_commands("Run `a <b>`, then c."))
    'Run <code>a &lt;b&gt;</code>, then c.'
    """
    # Every second part stands between backticks.
    parts = text.split("`")
    shown = [Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)]
    return Markup("").join(shown)


def size(n_bytes: int) -> str:
    """How large something is.

    Examples
    --------
    >>> size(900), size(5_000), size(3 * 2**20)
    ('900 bytes', '4.9 KiB', '3.0 MiB')
    """
    if n_bytes < _KIB:
        return f"{n_bytes} bytes"
    for unit, power in (("KiB", 1), ("MiB", 2)):
        n_bytes_in = n_bytes / _KIB**power
        if n_bytes_in < _KIB:
            return f"{n_bytes_in:.1f} {unit}"
    return f"{n_bytes / _KIB**3:.1f} GiB"
