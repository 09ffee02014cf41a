"""Projects, their parties, and the files that lie there when polling begins; all by the hub's own routes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from datacollab.agreement import AnchorRecipe, Project, Task, project_text
from datacollab.bundle import KeyPair, digest, pack
from datacollab.table import Column
from datacollab_hub.store import Store, allow_key

from .client import Answer, Asker, Pool

__all__ = ["Party", "Place", "at_once", "new_places", "open_places", "send"]

_PART = 2**22
_T = TypeVar("_T")


@dataclass(eq=False)
class Place:
    """A project.

    Attributes
    ----------
    owner, analyst : Asker
    parties : list of Party
    project : Project
    path : str
        Of its address on the hub, once it is there.
    """

    owner: Asker
    analyst: Asker
    parties: list[Party]
    project: Project
    path: str = ""


@dataclass(eq=False)
class Party(Asker):
    """A party of a project, and what it is to find there.

    Attributes
    ----------
    name : str
    place : Place
    n_files : int
        That its inbox lists.
    """

    key: KeyPair
    name: str
    place: Place = field(init=False)
    n_files: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.key)


def new_places(n_places: int, n_parties: int) -> list[Place]:
    """Projects with keys of their own."""
    places = []
    for at in range(n_places):
        owner, analyst = Asker(KeyPair.generate()), Asker(KeyPair.generate())
        parties = [Party(KeyPair.generate(), f"party{each}") for each in range(n_parties)]
        place = Place(owner, analyst, parties, _project(f"load{at}", owner, analyst, parties))
        for party in parties:
            party.place = place
        places.append(place)
    return places


def _project(name: str, owner: Asker, analyst: Asker, parties: Iterable[Party]) -> Project:
    return Project(
        name=name,
        purpose="To see what the hub can do.",
        columns=(Column(name="age", kind="number", unit="years", minimum=0, maximum=120),
                 Column(name="dose", kind="number", unit="mg", minimum=0, maximum=9)),
        task=Task(kind="classification", target="ill", classes=("no", "yes")),
        anchor=AnchorRecipe(method="smote", n_rows=40, source="a public register"),
        max_components=1,
        deadline=(datetime.now(UTC) + timedelta(days=30)).date(),
        seal_shares=True,
        owner=owner.key.public,
        analyst=analyst.key.public,
        parties={party.name: party.key.public for party in parties},
    )  # fmt: skip


async def open_places(pool: Pool, places: list[Place], data: Path, database: str) -> int:
    """Open the projects, and send each its project file, its anchor, and a model for each party; how many requests."""
    store = Store.opened(data, database=database)
    with store.writing() as connection:
        for place in places:
            allow_key(connection, place.owner.key.public, time.time())
    store.close()
    return sum(await at_once(8, lambda place: _open(pool, place), places))


async def _open(pool: Pool, place: Place) -> int:
    opened = _wanted(await pool.ask(place.owner, "POST", "/v1/projects", _json(name=place.project.name)), 201)
    place.path = f"/v1/projects/{opened.json()['project']}"
    text = project_text(place.project, place.owner.key).encode()
    _wanted(await pool.ask(place.owner, "PUT", f"{place.path}/agreement", text), 201)
    said = {"project_digest": place.project.digest}
    anchor = pack("datacollab.anchor", said, {"sealed.bin": bytes(2000)}, key=place.owner.key)
    n_asked = 2 + await send(pool, place.owner, place.path, "anchor", anchor)
    for party in place.parties:
        facts = {**said, "n_components": 1, "party": party.name}
        model = pack("datacollab.model", facts, {"sealed.bin": bytes(2000)}, key=place.analyst.key)
        n_asked += await send(pool, place.analyst, place.path, "model", model, recipient=party.name)
        party.n_files = 2
    return n_asked


async def send(pool: Pool, sender: Asker, path: str, kind: str, data: bytes, recipient: str | None = None) -> int:
    """Upload a file, of which nothing was sent before; how many requests it took."""
    said = {"kind": kind, "sha256": digest(data), "size": len(data), **({"recipient": recipient} if recipient else {})}
    begun = _wanted(await pool.ask(sender, "POST", f"{path}/uploads", _json(**said), patience=120), 201).json()
    starts = range(0, len(data), _PART)
    for start in starts:
        answer = await pool.ask(
            sender,
            "PATCH",
            f"{path}/uploads/{begun['upload']}",
            data[start : start + _PART],
            lines=f"Upload-Offset: {start}\r\n",
            patience=120,
        )
        _wanted(answer, 201 if start == starts[-1] else 204)
    return 1 + len(starts)


async def at_once(n: int, work: Callable[[_T], Awaitable[int]], items: Iterable[_T]) -> list[int]:
    """Do something with each, with so many at a time; the first that fails ends it."""
    left, done = iter(items), []

    async def one_by_one() -> None:
        for item in left:
            done.append(await work(item))

    async with asyncio.TaskGroup() as group:
        for _ in range(n):
            group.create_task(one_by_one())
    return done


def _json(**said: object) -> bytes:
    return json.dumps(said).encode()


def _wanted(answer: Answer, status: int) -> Answer:
    if answer.status != status:
        raise RuntimeError(f"{status} is wanted, the hub answers {answer.status}: {answer.body[:300]!r}")
    return answer
