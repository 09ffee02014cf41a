"""Pages of keys and of the project's owner: `keys new`, `keys mask`, `project new`, `project revise`, `anchor seal`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ...agreement import load_project
from ...bundle import PublicKey, write_atomically
from ...errors import ExchangeError
from ...exchange.steps import TABLES, Input
from ..web import Action, Job, Page, Place, chosen_file, given, perhaps_file, text
from ._desk import PartyDesk

KEYS, PROJECT, ANCHOR = "/keys", "/project", "/anchor"
_ELSEWHERE = ("like", "party", "analyst", "output")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_KEY = Input(name="key", words="A public key", option="--key", kind=Path, endings=(".key",), label="public key")
_MOST_LETTERS = 2**19
_GROUPS = {
    "The target": ("classes", "positive", "target_range", "task"),
    "Columns and their entries": ("without", "kinds", "missing", "keep", "valid_range"),
    "Times to an event": ("event", "time", "seen"),
    "An effect": ("treatment", "treated", "outcome"),
    "A study": ("statistics",),
    "Rules": ("rows", "min_rows", "quorum", "deadline", "max_components", "anchor_rows"),
}
"""Options of a draft that the page has, by what they are about."""


def _checks(written: str) -> list[tuple[int, str, str]]:
    """Return what is marked CHECK: the line's number, what to look at, and the entry that follows."""
    lines = written.split("\n")
    found = []
    for number, line in enumerate(lines):
        if "CHECK" in line:
            after = [each for each in lines[number + 1 :] if each.strip() and not each.startswith("#")][:2]
            entry = after[-1] if after[:1] == ["[[columns]]"] else "".join(after[:1])
            found.append((number + 1, line.partition("CHECK")[2].lstrip(": "), entry))
    return found


def owner_places(desk: PartyDesk) -> tuple[Place, ...]:
    """Return an owner's steps; none without keys, or where another owner's project was joined."""
    if desk.key is None or (desk.has("project.toml") and desk.opened().project.owner != desk.key):
        return ()
    steps = ((PROJECT, "draft the project", "project.toml"), (ANCHOR, "make the anchor", "anchor.dcanchor"))
    return tuple(
        Place(path=path, name=f"As owner: {name}", is_done=(desk.path / "owner" / file).is_file(), is_beside=True)
        for path, name, file in steps
    )


def owner_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms: make keys, collect public keys, draft and sign the project, seal the anchor."""
    commands, place = desk.commands, desk.path / "owner"
    project, anchor = place / "project.toml", place / "anchor.dcanchor"

    desk.fields[PROJECT] = [each for each in commands.steps["project new"].inputs if each.name not in _ELSEWHERE]

    def members() -> dict[str, PublicKey]:
        return {file.stem: PublicKey.load(file, proven=True) for file in sorted(place.glob("*.key"))}

    def make_keys(form: FormData) -> str:
        commands.run("keys new", folder=[desk.path])
        return KEYS

    def make_mask(form: FormData) -> str:
        commands.run("keys mask")
        return KEYS

    def show(request: Request) -> Response | dict[str, Any]:
        if desk.key is None:
            return RedirectResponse(KEYS, 303)
        written, agreed = (project.read_text(encoding="utf-8") if project.is_file() else ""), None
        with suppress(ExchangeError, FileNotFoundError):
            agreed = load_project(project)
        signed = agreed is not None and (agreed.revision > 1 or "signed" in desk.done)
        return {
            "members": members(),
            "step": commands.steps["project new"],
            "groups": _GROUPS,
            "written": written,
            "agreed": agreed,
            "signed": signed,
            "checks": _checks(written),
            "lines": [line for line in desk.done.get("project", []) if not line.startswith("Check what")],
            "warnings": desk.done.get("signed", []),
            "place": place,
        }

    def add_member(form: FormData) -> str:
        name = "analyst" if text(form, "role") == "analyst" else text(form, "member")
        if not _NAME.fullmatch(name) or (name == "analyst") != (text(form, "role") == "analyst"):
            raise ValueError("Name: expected letters, digits, - and _, such as hospital-a. Write one.")
        chosen = perhaps_file(form, desk.files, _KEY, as_name="key", prefix="member_")
        source = desk.path / "public.key" if chosen is None else chosen.path
        try:
            PublicKey.load(source, proven=True)
            place.mkdir(mode=0o700, exist_ok=True)
            write_atomically(place / f"{name}.key", source.read_bytes())
        finally:
            if chosen is not None:
                chosen.discard()
        return PROJECT

    def remove_member(form: FormData) -> str:
        name = text(form, "gone")
        if name in members():
            (place / f"{name}.key").unlink()
        return PROJECT

    def draft(form: FormData) -> None:
        step, known = commands.steps["project new"], members()
        options = given(form, step, [each.name for each in desk.fields[PROJECT]])
        if lacking := desk.lacks(PROJECT)[0]:
            raise ValueError(lacking)
        parties = [f"{name}={place / f'{name}.key'}" for name in known if name != "analyst"]
        table = chosen_file(form, desk.files, step["like"], as_name="public")

        def work(job: Job) -> None:
            job.say(f"Reading {table.path.name}, and drafting")
            public = desk.files.keep(table, as_name="public")
            if project.exists():
                project.replace(place / "project.before.toml")
            desk.public = public
            desk.done.pop("signed", None)
            desk.done["project"] = commands.run(
                "project new", like=public, party=parties, analyst=place / "analyst.key", output=project, **options
            )

        desk.jobs.start("Drafting the project", PROJECT, work, at_end=table.discard)

    def sign(form: FormData) -> str:
        written = form.get("text")
        if not isinstance(written, str) or not written.strip() or len(written) > _MOST_LETTERS:
            raise ValueError("The project file is empty or too long. Look at the page again.")
        write_atomically(project, written.replace("\r\n", "\n").encode())
        # What else the command says, the page does: it leads to the anchor.
        lines = commands.run("project revise", file=project)
        desk.done["signed"] = [line for line in lines if line.startswith("warning")]
        return f"{PROJECT}#signed"

    def seal(form: FormData) -> None:
        table = chosen_file(form, desk.files, commands.steps["project new"]["like"], as_name="public")

        def work(job: Job) -> None:
            job.say("Making the anchor, and sealing it to the parties")
            new = place / "new.dcanchor"
            new.unlink(missing_ok=True)
            lines = commands.run("anchor seal", public=table.path, project=project, output=new)
            new.replace(anchor)
            desk.done["anchor"] = [
                line.replace(str(new), str(anchor)).replace(str(table.path), table.path.name) for line in lines
            ]

        desk.jobs.start("Making the anchor", ANCHOR, work, at_end=table.discard)

    def seal_page(request: Request) -> dict[str, Any]:
        agreed = load_project(project) if project.is_file() else None
        is_old = agreed is not None and anchor.is_file() and anchor.stat().st_mtime_ns < project.stat().st_mtime_ns
        shown = {"agreed": agreed, "sealed": anchor.is_file(), "is_old": is_old, "place": place}
        return shown | {"lines": desk.done.get("anchor", []), "public": desk.public or "", "tables": TABLES}

    def download(file: Path) -> Response:
        if not file.is_file():
            raise FileNotFoundError(f"There is no {file.name} yet. Make it first.")
        return FileResponse(file, filename=file.name, media_type="application/octet-stream")

    yield Page(KEYS, template="keys.html")
    yield Action(KEYS, make_keys)
    yield Action(f"{KEYS}/mask", make_mask)
    yield Page(f"{KEYS}/public.key", lambda request: download(desk.path / "public.key"))
    yield Page(PROJECT, show, "project.html")
    yield Action(f"{PROJECT}/member", add_member)
    yield Action(f"{PROJECT}/remove", remove_member)
    yield Action(PROJECT, draft)
    yield Action(f"{PROJECT}/sign", sign)
    yield Page(f"{PROJECT}/project.toml", lambda request: download(project))
    yield Page(ANCHOR, seal_page, "anchor.html")
    yield Action(ANCHOR, seal)
    yield Page(f"{ANCHOR}/anchor.dcanchor", lambda request: download(anchor))
