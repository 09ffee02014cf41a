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
from ...folder.step_table import TABLES, Input
from ..web import Action, Job, Page, StepPlace, read_inputs, take_file, take_optional_file, text
from ._desk import PartyDesk

KEYS = "/keys"
PROJECT = "/project"
ANCHOR = "/anchor"
_ELSEWHERE = ("like", "party", "analyst", "output", "logistic_model")
"""Inputs of a draft that are no fields of its form: files, members, and where it is written."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_KEY = Input(name="key", words="A public key", option="--key", kind=Path, endings=(".key",), label="public key")
_MOST_LETTERS = 2**19
"""Letters of a project file: a thousand columns with their categories have fewer."""
_GROUPS = {
    "The target": ("classes", "positive", "target_range", "task"),
    "Columns and their entries": ("without", "kinds", "missing", "keep", "valid_range"),
    "Times to an event": ("event", "time", "seen"),
    "An effect": ("treatment", "treated", "outcome"),
    "A study": ("statistics",),
    "Rules": ("rows", "min_rows", "quorum", "deadline", "max_components", "anchor_rows"),
}
"""Options of a draft that the page has, by their subjects."""


def _list_checks(project_text: str) -> list[tuple[int, str, str]]:
    """Return lines marked CHECK: the number of each, its text, and the entry that follows."""
    lines = project_text.split("\n")
    checks = []
    for number, line in enumerate(lines):
        if "CHECK" in line:
            after = [each for each in lines[number + 1 :] if each.strip() and not each.startswith("#")]
            if after and after[0] == "[[columns]]":
                after = after[1:]  # The head of a column says nothing; its name comes next.
            checks.append((number + 1, line.partition("CHECK")[2].lstrip(": "), "".join(after[:1])))
    return checks


def owner_places(desk: PartyDesk) -> tuple[StepPlace, ...]:
    """Return an owner's steps; none without keys, or where another owner's project was joined."""
    # Everybody may become an owner until they have joined another's project.
    if desk.key is None or (desk.has("project.toml") and desk.open_folder().project.owner != desk.key):
        return ()
    steps = ((PROJECT, "draft the project", "project.toml"), (ANCHOR, "make the anchor", "anchor.dcanchor"))
    return tuple(
        StepPlace(path=path, name=f"As owner: {name}", is_done=(desk.path / "owner" / file).is_file(), is_beside=True)
        for path, name, file in steps
    )


def owner_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms: make keys, collect public keys, draft and sign the project, seal the anchor."""
    yield from _key_parts(desk)
    yield from _member_parts(desk)
    yield from _project_parts(desk)
    yield from _anchor_parts(desk)


def _load_members(place: Path) -> dict[str, PublicKey]:
    return {file.stem: PublicKey.load(file, proven=True) for file in sorted(place.glob("*.key"))}


def _download(file: Path) -> Response:
    if not file.is_file():
        raise FileNotFoundError(f"There is no {file.name} yet. Make it first.")
    return FileResponse(file, filename=file.name, media_type="application/octet-stream")


def _key_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    def make_keys(form: FormData) -> str:
        desk.commands.run("keys new", folder=[desk.path])
        return KEYS

    def make_mask(form: FormData) -> str:
        desk.commands.run("keys mask")
        return KEYS

    yield Page(KEYS, template="keys.html")
    yield Action(KEYS, make_keys)
    yield Action(f"{KEYS}/mask", make_mask)
    yield Page(f"{KEYS}/public.key", lambda request: _download(desk.path / "public.key"))


def _member_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield forms that collect members' public keys in the owner's folder."""
    place = desk.path / "owner"

    def add_member(form: FormData) -> str:
        is_analyst = text(form, "role") == "analyst"
        name = "analyst" if is_analyst else text(form, "member")
        # No party may be called analyst: its key would take the place of the analyst's.
        if not _NAME.fullmatch(name) or (name == "analyst") != is_analyst:
            raise ValueError("Name: expected letters, digits, - and _, such as hospital-a. Write one.")
        chosen = take_optional_file(form, desk.files, _KEY, as_name="key", prefix="member_")
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
        # Only a name of the list: the form's text never becomes a path.
        if name in _load_members(place):
            (place / f"{name}.key").unlink()
        return PROJECT

    yield Action(f"{PROJECT}/member", add_member)
    yield Action(f"{PROJECT}/remove", remove_member)


def _project_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield the page of the project, and forms that draft and sign it."""
    commands = desk.commands
    place = desk.path / "owner"
    project = place / "project.toml"
    desk.fields[PROJECT] = [each for each in commands.steps["project new"].inputs if each.name not in _ELSEWHERE]

    def show(request: Request) -> Response | dict[str, Any]:
        if desk.key is None:
            return RedirectResponse(KEYS, 303)
        written = ""
        if project.is_file():
            written = project.read_text(encoding="utf-8")
        # While the file is edited it may be no project; the page shows it all the same.
        agreed = None
        with suppress(ExchangeError, FileNotFoundError):
            agreed = load_project(project)
        signed = agreed is not None and (agreed.revision > 1 or "signed" in desk.done)
        return {
            "members": _load_members(place),
            "step": commands.steps["project new"],
            "groups": _GROUPS,
            "written": written,
            "agreed": agreed,
            "signed": signed,
            "checks": _list_checks(written),
            "lines": [line for line in desk.done.get("project", []) if not line.startswith("Check what")],
            "warnings": desk.done.get("signed", []),
            "place": place,
        }

    def draft(form: FormData) -> None:
        step = commands.steps["project new"]
        members = _load_members(place)
        options = read_inputs(form, step, [each.name for each in desk.fields[PROJECT]])
        if lacking := desk.lacks(PROJECT)[0]:
            raise ValueError(lacking)
        parties = [f"{name}={place / f'{name}.key'}" for name in members if name != "analyst"]
        table = take_file(form, desk.files, step["like"], as_name="public")

        def work(job: Job) -> None:
            job.say(f"Reading {table.path.name}, and drafting")
            public = desk.files.keep(table, as_name="public")
            if project.exists():
                # A draft anew overwrites edits by hand; the last file stays beside it.
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
        # Browsers end lines with both marks; the file is signed as other programs write it.
        write_atomically(project, written.replace("\r\n", "\n").encode())
        # The page itself leads to the anchor, as the command's other lines do.
        lines = commands.run("project revise", file=project)
        desk.done["signed"] = [line for line in lines if line.startswith("warning")]
        return f"{PROJECT}#signed"

    yield Page(PROJECT, show, "project.html")
    yield Action(PROJECT, draft)
    yield Action(f"{PROJECT}/sign", sign)
    yield Page(f"{PROJECT}/project.toml", lambda request: _download(project))


def _anchor_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield the page of the anchor, and the form that makes and seals it."""
    commands = desk.commands
    place = desk.path / "owner"
    project = place / "project.toml"
    anchor = place / "anchor.dcanchor"

    def seal(form: FormData) -> None:
        table = take_file(form, desk.files, commands.steps["project new"]["like"], as_name="public")

        def work(job: Job) -> None:
            job.say("Making the anchor, and sealing it to the parties")
            # Under another name first: a refusal leaves the anchor that parties may have already.
            new = place / "new.dcanchor"
            new.unlink(missing_ok=True)
            lines = commands.run("anchor seal", public=table.path, project=project, output=new)
            new.replace(anchor)
            desk.done["anchor"] = [
                line.replace(str(new), str(anchor)).replace(str(table.path), table.path.name) for line in lines
            ]

        desk.jobs.start("Making the anchor", ANCHOR, work, at_end=table.discard)

    def seal_page(request: Request) -> dict[str, Any]:
        agreed = None
        is_old = False
        if project.is_file():
            agreed = load_project(project)
            is_old = anchor.is_file() and anchor.stat().st_mtime_ns < project.stat().st_mtime_ns
        values = {"agreed": agreed, "sealed": anchor.is_file(), "is_old": is_old, "place": place}
        return values | {"lines": desk.done.get("anchor", []), "public": desk.public or "", "tables": TABLES}

    yield Page(ANCHOR, seal_page, "anchor.html")
    yield Action(ANCHOR, seal)
    yield Page(f"{ANCHOR}/anchor.dcanchor", lambda request: _download(anchor))
