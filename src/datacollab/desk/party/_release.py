"""What would leave, and the risk: `party check`, as pages."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...exchange.party_folder import PartyFolder, ReleaseSummary, deadline_passed, foresight_in_words
from ...party import OBFUSCATORS
from ..web import Action, Job, Page, Pages, bars_svg, checked, number, refusal_of
from ._desk import Looked, PartyDesk
from ._record import record_of
from ._risk_pictures import risk_pictures
from ._ways import form_of, options_of

if TYPE_CHECKING:
    from ...risk.audit._criteria import Light

__all__ = ["RELEASE", "attack_words", "look_at", "release_parts", "summary_context"]

RELEASE = "/release"


def release_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the third step."""

    def show(request: Request) -> Response:
        table, looked, opened = desk.wanted_table(), desk.looked, desk.opened()
        context: dict[str, Any] = {"looked": looked}
        if looked is not None:
            prepared = looked.prepared
            asked = request.query_params.get("row", "1")
            record = record_of(opened.project, prepared, int(asked) if asked.isdecimal() and len(asked) < 10 else 1)
            context |= summary_context(prepared.summary)
            context |= {"record": record, "bars": bars_svg(record.after), "reasons": looked.reasons}
            options = (prepared.way.options, *attack_words(desk.attacks))
            context["command"] = desk.command("check", shlex.quote(str(table)), *options)
        else:
            context["command"] = desk.command("check", shlex.quote(str(table)))
        return pages.page(
            "release.html",
            path=RELEASE,
            table=table,
            form=form_of(desk.options),
            obfuscators=OBFUSCATORS,
            presets=presets(opened),
            shared=desk.shared_entry(),
            **context,
        )

    def look(form: FormData) -> Response:
        return look_at(
            desk,
            options_of(form),
            audit=not checked(form, "no_audit"),
            foresight=not checked(form, "no_foresight"),
            time_budget=number(form, "time_budget"),
        )

    yield Page(RELEASE, show)
    yield Action(RELEASE, look)


def presets(opened: PartyFolder) -> list[tuple[str, str]]:
    """Presets that the project's targets have, the usual one first."""
    groups = ("groups", "groups: means of five of your rows, with noise")
    private = ("private", "private: rows of the anchor in place of yours")
    none = ("none", "none: your rows, without a defence")
    single = opened.project.task.is_single
    usual = ("", "usual: private" if single else "usual for these targets")
    return [usual, private, groups, none] if single else [usual, groups, none]


def look_at(
    desk: PartyDesk,
    options: dict[str, Any],
    *,
    audit: bool = True,
    foresight: bool = True,
    time_budget: float | None = None,
) -> Response:
    """Begin to do all that sharing does, but let nothing leave."""
    table, opened = desk.wanted_table(), desk.opened()

    def work(job: Job) -> None:
        desk.looked = None
        desk.options, desk.attacks = options, {"audit": audit, "time_budget": time_budget}
        sentence = foresight_in_words(opened.foresee, table, progress=job.say, **options)[1] if foresight else ""
        prepared = opened.prepare(table, **options, **desk.attacks, progress=job.say)
        reasons = [*deadline_passed(opened.project), *prepared.reasons]
        codes = [reason.code for reason in reasons]
        opened.record("check", file=table.name, way=prepared.way.options, reasons=codes)
        desk.looked = Looked(prepared=prepared, foresight=sentence, reasons=[refusal_of(reason) for reason in reasons])

    desk.jobs.start("Looking at what would leave", RELEASE, work)
    return RedirectResponse("/work", 303)


def attack_words(attacks: Mapping[str, Any]) -> list[str]:
    """Options of a command that attacks a share as the desk does.

    Examples
    --------
    >>> attack_words({"audit": True, "time_budget": 90.0})
    ['--time-budget 90']
    >>> attack_words({"audit": False, "time_budget": None})
    ['--no-audit']
    """
    if not attacks["audit"]:
        return ["--no-audit"]
    return [] if attacks["time_budget"] is None else [f"--time-budget {attacks['time_budget']:g}"]


def summary_context(summary: ReleaseSummary) -> dict[str, Any]:
    """What the parts of a page that show a release need."""
    return {
        "summary": summary,
        "facts": list(summary.facts()),
        "risks": risk_pictures(summary),
        "lights": {} if summary.risk is None else summary.risk.lights,
        "badge": _badge,
        "notes": () if summary.risk is None else summary.risk.notes,
    }


def _badge(light: Light) -> Markup:
    from ...risk.audit._html import light_badge

    return Markup(light_badge(light))
