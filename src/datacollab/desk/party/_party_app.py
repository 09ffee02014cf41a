"""A party's desk as an application: joining, the table, and what follows a share."""

from __future__ import annotations

import csv
import filecmp
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from ..._notices import notices_to
from ...agreement import Project, read_project
from ...errors import ExchangeError
from ...exchange.party_folder import PartyFolder
from ...exchange.steps import SIDES, STEPS, leading_figure, score_rows
from ...table import Column, adjustments_lines, adjustments_text
from ..web import (
    Action,
    Job,
    Page,
    Pages,
    Place,
    Session,
    checked,
    chosen_file,
    create_app,
    perhaps_file,
    refusal_of,
    text,
)
from ._desk import Offer, PartyDesk, Seen
from ._owner import KEYS, owner_parts, owner_places
from ._release import APPROVE, OUTBOX, RELEASE, SUMS, release_parts

JOIN, TABLE, WRONG = "/join", "/table", "/wrong"
MODEL, PREDICT, EVALUATE, EXPLAIN, DISTIL, FORGET = (
    *("/model", "/predict", "/evaluate"),
    *("/explain", "/distil", "/forget"),
)


def party_app(desk: PartyDesk, session: Session) -> ASGIApp:
    """Put a party's desk together."""

    def title() -> str:
        if not desk.has("project.toml"):
            return "A folder that has joined no project yet"
        opened = desk.opened()
        return f"Party {opened.name} of project {opened.project.name}"

    def home(request: Request) -> Response | dict[str, Any]:
        if not desk.has("project.toml"):
            return RedirectResponse(KEYS if desk.key is None else JOIN, 303)
        following = next((place for place in _places(desk) if not (place.is_done or place.is_beside)), None)
        return {"following": None if desk.has_forgotten() else following}

    templates = Path(__file__).parent / "templates"
    shown: dict[str, Any] = {"desk": desk, "adjustments_text": adjustments_text, "adjustments_lines": adjustments_lines}
    pages = Pages(session, desk.jobs, templates, title, lambda: _places(desk), described=_described, **shown)
    parts = (*owner_parts(desk), *_join_parts(desk), *_table_parts(desk), *release_parts(desk), *_result_parts(desk))
    return create_app(session, pages, desk.jobs, [Page("/", home, "home.html"), *parts])


def _place(verb: str, path: str, is_done: bool, note: str = "", *, is_beside: bool = False) -> Place:
    return Place(path=path, name=STEPS[f"party {verb}"].title, note=note, is_done=is_done, is_beside=is_beside)


def _places(desk: PartyDesk) -> Sequence[Place]:
    """Return the party's steps, and how far it is."""
    has_keys = desk.key is not None
    keys = Place(path=KEYS, name="Keys", is_done=has_keys)
    owner = owner_places(desk)
    if not desk.has("project.toml"):
        return (keys, *([_place("join", JOIN, False)] if has_keys else []), *owner)
    shared, seen, looked = desk.shared_entry(), desk.seen, desk.looked
    is_shared, has_anchor = shared is not None, desk.has_anchor
    when = "" if shared is None else f"shared {shared['time'][:10]}"
    found = "" if seen is None else (seen.refusal.code if seen.refusal else f"{seen.n_rows} rows read")
    may = "" if looked is None else ("may not leave" if looked.reasons else "may leave")
    leaving = (
        _place("check", RELEASE, is_shared or (looked is not None and not looked.reasons), may),
        _place("share", APPROVE, is_shared, when),
        _place("check", SUMS, is_shared, when),
    )
    installed = desk.has("model.dcmodel")
    after = (
        _place("install", MODEL, installed, "installed" if installed else ""),
        _place("predict", PREDICT, "predict" in desk.done),
        _place("evaluate", EVALUATE, "evaluate" in desk.done, is_beside=True),
        _place("explain", EXPLAIN, "explain" in desk.done, is_beside=True),
        _place("distil", DISTIL, desk.has("learned.dcstate"), is_beside=True),
        _place("forget", FORGET, desk.has_forgotten(), is_beside=True),
    )
    table = "" if desk.table is None else desk.table.name
    places = (
        keys,
        _place("join", JOIN, has_anchor, "" if has_anchor else "no anchor"),
        Place(path=TABLE, name="Choose the table", note=table, is_done=desk.table is not None or is_shared),
        Place(
            path=WRONG,
            name="Check the table",
            note=found,
            is_done=is_shared or (seen is not None and seen.refusal is None),
        ),
        *leaving,
        Place(path=OUTBOX, name="Outbox", note=when and "to be sent by you", is_done=is_shared),
        *after,
        *owner,
    )
    return [place for place in places if place.path not in desk.left_out]


def _join_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield the page and forms of joining: a project is looked at, its fingerprints are compared, and it is joined."""
    step = STEPS["party join"]

    def show(request: Request) -> dict[str, Any]:
        offer, there = desk.offer, desk.opened().project if desk.has("project.toml") else None
        name = None if offer is None else _own_name(desk, offer.project)
        files = [desk.path / "owner" / name for name in ("project.toml", "anchor.dcanchor")]
        made = [file if file.is_file() else "" for file in files]
        return {"offer": offer, "there": there, "name": name, "fingerprints": fingerprints, "made": made}

    def fingerprints(project: Project) -> dict[str, str]:
        keys = {"Owner": project.owner, "Analyst": project.analyst}
        return {"Project": project.fingerprint} | {name: key.fingerprint for name, key in keys.items()}

    def look(form: FormData) -> str:
        with ExitStack() as chosen:
            given = chosen_file(form, desk.files, step["project"], as_name="project")
            chosen.callback(given.discard)
            with given.path.open("rb") as source:
                file = desk.files.take(source, "project.toml", as_name="project", endings=(".toml",))
            chosen.callback(file.discard)
            anchor = perhaps_file(form, desk.files, step["anchor"], as_name="anchor", prefix="anchor_")
            if anchor is not None:
                chosen.callback(anchor.discard)
            offer = Offer(project=read_project(file.path)[0], file=file, anchor=anchor)
            if _own_name(desk, offer.project) == "analyst" and anchor is not None:
                raise ValueError("You are the analyst, who must not have the anchor. Delete it, and look without it.")
            chosen.pop_all()
        given.discard()
        desk.offered(offer)
        return JOIN

    def accept(form: FormData) -> None:
        offer = desk.offer
        if offer is None or text(form, "offer") != offer.id:
            raise ExchangeError(
                "NOT_APPROVED", "The project that was shown to you is not the one that waits here. Look at it again."
            )
        if not checked(form, "compared"):
            raise ValueError(
                "Nobody said that the fingerprints were compared. A file says of itself whose it is: compare the "
                "fingerprints with the owner by telephone, and tick the box."
            )

        def work(job: Job) -> None:
            job.say("Checking project and anchor" if offer.anchor else "Checking the project")
            anchor = None if offer.anchor is None else offer.anchor.path
            try:
                if offer.project.analyst == desk.key:
                    desk.commands.run("analyst init", project=offer.file.path)
                else:
                    desk.join(offer.file.path, anchor, owner=offer.project.owner)
            finally:
                offer.discard()
            job.where = "/"

        # What is being joined is nobody's to replace.
        desk.offer = None
        try:
            desk.jobs.start(step.doing, JOIN, work)
        except ExchangeError:
            desk.offered(offer)
            raise

    def decline(form: FormData) -> str:
        desk.offered(None)
        return JOIN

    yield Page(JOIN, show, "join.html")
    yield Action(JOIN, look, most_files=2)
    yield Action("/join/accept", accept)
    yield Action("/join/decline", decline)


def _own_name(desk: PartyDesk, project: Project) -> str:
    """Return whose this folder's key is, in the project: a party's name, or "analyst"."""
    for name, public in project.parties.items():
        if public == desk.key:
            return name
    if desk.key is None:
        raise ExchangeError("KEY_MISSING", "This folder has no keys. Make them first, on the page Keys.")
    if project.analyst == desk.key:
        return "analyst"
    raise ExchangeError(
        "NOT_A_MEMBER",
        f"The key in this folder ({desk.key.fingerprint}) is none of the parties' in project {project.name!r}, nor the "
        "analyst's. Send the owner the file public.key, and ask for a new project file.",
    )


def _table_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms of choosing the table, and of what is wrong with it."""
    of, doing = STEPS["party check"]["table"], "Looking at the table"

    def chosen(form: FormData) -> None:
        chosen = chosen_file(form, desk.files, of, as_name="table")

        def work(job: Job) -> None:
            # Not before: what is at work meanwhile may read the last one.
            desk.choose(desk.files.keep(chosen, as_name="table"))
            look(job)

        desk.jobs.start(doing, WRONG, work, at_end=chosen.discard)

    def look(job: Job) -> None:
        table = desk.chosen_table()
        job.say(f"Reading {table.name}")
        desk.seen = _seen_in(desk.opened(), table)

    def again(form: FormData) -> None:
        desk.chosen_table()
        desk.jobs.start(doing, WRONG, look)

    def removed(form: FormData) -> None:
        def work(job: Job) -> None:
            kept = desk.files.kept("table")
            desk.files.remove("table")
            if desk.table == kept:
                desk.choose(None)

        desk.jobs.start("Removing the copy of the table", TABLE, work)

    def wrong(request: Request) -> dict[str, Any]:
        seen = desk.seen
        found = seen.adjusted.get("columns", {}) if seen else {}
        columns = [_described(each) | {"found": found.get(each.name, {})} for each in desk.opened().project.columns]
        return {"table": desk.chosen_table(), "seen": seen, "columns": columns}

    yield Page(TABLE, template="table.html")
    yield Action(TABLE, chosen)
    yield Action("/table/remove", removed)
    yield Page(WRONG, wrong, "wrong.html")
    yield Action(WRONG, again)


def _seen_in(folder: PartyFolder, table: Path) -> Seen:
    """Return what is wrong with a table; a refusal is a finding here."""
    lines: list[str] = []
    try:
        with notices_to(lambda line, is_plain: lines.append(line)):
            encoded = folder.encode(table)
    except ExchangeError as error:
        return Seen(refusal=refusal_of(error), understood=" ".join(lines))
    targets: dict[str, int] = {}
    if folder.project.task.kind == "classification" and encoded.target is not None:
        counts = Counter(encoded.target.tolist())
        targets = {str(name): counts[name] for name in folder.project.task.classes}
    return Seen(n_rows=encoded.n_rows, adjusted=encoded.adjusted.to_dict(), targets=targets, understood=" ".join(lines))


_RULES = {
    "refuse": "others are refused",
    "clip": "others become the nearer bound",
    "missing": "others count as missing",
    "other": "others count as “other”",
}


def _described(column: Column) -> dict[str, Any]:
    if column.kind == "number":
        allowed = f"{column.minimum:.10g} to {column.maximum:.10g}" + (f" {column.unit}" if column.unit else "")
        rule = column.outside
    else:
        allowed, rule = ", ".join(column.categories), column.unknown
    missing = "refused" if column.missing == "refuse" else f"filled in with {column.fill}"
    return {"name": column.name, "kind": column.kind, "allowed": allowed, "rule": _RULES[rule], "missing": missing}


_PREDICTIONS, _EXPLANATIONS, _FIGURE = "predictions.csv", "explanations.csv", "explanations.png"
_USUAL = ("", "the usual: both together, where they were combined")
_OF_SUMS = ("combined", "local", "collaboration")
_MOST_COLUMNS, _MOST_CLASSES = 15, 12


def _result_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms of what follows a share: a model, predictions, and what they are worth."""

    def using(*sides: str) -> list[tuple[str, str]]:
        return [_USUAL, *((side, SIDES[side]) for side in sides if not desk.of_sums or side in _OF_SUMS)]

    def is_ours(file: Path) -> bool:
        """Return whether a file is the very table that was chosen."""
        return desk.table is not None and desk.table.is_file() and filecmp.cmp(desk.table, file, shallow=False)

    def install(job: Job, file: Path, **options: Any) -> Any:
        return desk.opened().install(file, progress=job.say, **options)

    def predict(
        job: Job, file: Path, *, tested: Path | None = None, find: float | None = None, **options: Any
    ) -> dict[str, Any]:
        adjusted: dict[str, Any] = {}
        opened, output, threshold = desk.opened(), desk.files.made() / _PREDICTIONS, None
        if tested is not None:
            job.say(f"Choosing a threshold on {tested.name}")
            find = STEPS["party predict"]["find"].default if find is None else find
            threshold = opened.threshold(tested, using=options.get("using"), find=find)
            options["flag_from"] = threshold["least"]
        job.say(f"Predicting {file.name}")
        n_rows = opened.predict(file, output, tell=lambda found: adjusted.update(found.to_dict()), **options)
        found = {"n_rows": n_rows, "adjusted": adjusted, "threshold": threshold}
        found["were_shared"] = tested is not None and is_ours(tested)
        return found | _counted(output, [str(name) for name in opened.project.task.classes])

    def evaluate_page(request: Request) -> dict[str, Any]:
        found, unit = desk.done.get("evaluate"), desk.opened().project.task.unit
        shown = {"using": using(*SIDES), "unit": unit, "found": found, "words": SIDES}
        return shown if found is None else shown | _evaluated(found, unit)

    def evaluate(job: Job, file: Path, **options: Any) -> Any:
        job.say(f"Predicting {file.name}, by all models that are here")
        return desk.opened().evaluate(file, **options) | {"were_shared": is_ours(file)}

    def explain_page(request: Request) -> dict[str, Any]:
        found, folder = desk.done.get("explain"), desk.files.path
        importance = [] if found is None else list(found.importance().items())
        task = desk.opened().project.task
        classes, usual = task.classes, f"the usual: {'all' if task.positive is None else task.positive}"
        return {
            "classes": [("", usual), *((name, name) for name in classes)],
            "found": found,
            "importance": importance[:_MOST_COLUMNS],
            "n_columns": len(importance),
            "kept": [name for name in (_EXPLANATIONS, _FIGURE) if (folder / name).is_file()],
            "place": folder,
            "file": _EXPLANATIONS,
            "figure": _FIGURE if found is not None and (folder / _FIGURE).is_file() else "",
        }

    def check_class(options: dict[str, Any]) -> None:
        if (name := options.get("of_class")) is not None and name not in map(str, desk.opened().project.task.classes):
            raise ValueError("There is no such class in the project. Choose one of the list.")

    def explain(job: Job, file: Path, **options: Any) -> Any:
        opened, made = desk.opened(), desk.files.made()
        # A picture is of one class; without matplotlib, or of several, there are the figures of the page.
        has_one_picture = "of_class" in options or len(opened.project.task.classes) <= 2
        return opened.explain(
            file,
            made / _EXPLANATIONS,
            figure=made / _FIGURE if has_one_picture and find_spec("matplotlib") else None,
            progress=lambda done, n_rows: job.say(f"Row {done} of {n_rows}", done / n_rows),
            **options,
        )

    def distil(job: Job, file: Path, **options: Any) -> Any:
        job.say("Checking the anchor predictions, and distilling a model")
        return desk.opened().distil(file, **options)

    def forget(form: FormData) -> None:
        opened = desk.opened()
        if text(form, "name") != opened.name:
            raise ValueError(f"Nothing was destroyed. If you mean it, write the party's name, {opened.name}.")

        def work(job: Job) -> None:
            opened.forget()
            job.say("Removing the copies that this desk keeps")
            desk.forget_copies()

        desk.jobs.start(STEPS["party forget"].doing, FORGET, work)

    yield Page(MODEL, lambda request: {"sides": _benefits(desk.done.get("install", {}).get("benefit"))}, "model.html")
    yield desk.form("install", install, path=MODEL, file="model", fields=("public",))
    yield Page(PREDICT, lambda request: {"using": using("local", "collaboration", "distilled")}, "predict.html")
    yield desk.form(
        "predict",
        predict,
        path=PREDICT,
        file="table",
        also="tested",
        fields=("using", "keep", "find"),
        writes=(_PREDICTIONS,),
    )
    yield from _kept_parts(desk, "predict", PREDICT, (_PREDICTIONS,))
    yield Page(EVALUATE, evaluate_page, "evaluate.html")
    yield desk.form("evaluate", evaluate, path=EVALUATE, file="table", fields=("using", "find"))
    yield Page(EXPLAIN, explain_page, "explain.html")
    yield desk.form(
        "explain",
        explain,
        path=EXPLAIN,
        file="table",
        fields=("most_rows", "of_class", "log_odds", "keep"),
        check=check_class,
        writes=(_EXPLANATIONS, _FIGURE),
    )
    yield from _kept_parts(desk, "explain", EXPLAIN, (_EXPLANATIONS, _FIGURE))
    yield Page(DISTIL, template="distil.html")
    yield desk.form("distil", distil, path=DISTIL, file="answers", fields=("tree",))
    yield Page(FORGET, template="forget.html")
    yield Action(FORGET, forget)


def _kept_parts(desk: PartyDesk, verb: str, path: str, names: Sequence[str]) -> Iterator[Page | Action]:
    """Yield downloads of files that a step has written, and the form that removes them."""

    def remove(form: FormData) -> None:
        desk.jobs.start("Removing what was written", path, lambda job: desk.remove(verb, names))

    def download(name: str) -> Response:
        file = desk.files.path / name
        if verb not in desk.done or not file.is_file():
            raise FileNotFoundError("There is no such file to be looked at. Give a table first.")
        return FileResponse(file, filename=name) if name.endswith(".csv") else FileResponse(file)

    yield Action(f"{path}/remove", remove)
    for name in names:
        yield Page(f"{path}/{name}", lambda request, name=name: download(name))  # type: ignore[misc]


def _counted(file: Path, classes: Sequence[str]) -> dict[str, Any]:
    """Return how many rows of predictions are of each class, and how many are flagged; none without classes."""
    if not classes:
        return {"classes": {}, "n_flagged": 0}
    # As `write_table` wrote it: semicolons come with a mark of UTF-8.
    with file.open("rb") as source:
        delimiter = ";" if source.read(3) == BOM_UTF8 else ","
    with file.open(encoding="utf-8-sig", newline="") as lines:
        counts = Counter((row["prediction"], row.get("flagged")) for row in csv.DictReader(lines, delimiter=delimiter))
    of_class = {name: sum(n for (said, _), n in counts.items() if said == name) for name in classes}
    return {"classes": of_class, "n_flagged": sum(n for (_, flagged), n in counts.items() if flagged == "True")}


_LESS_IS_BETTER = ("log_loss", "rmse")


def _benefits(benefit: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the score of each side, with the ends of its interval if it has one."""
    found = [name for name in ("local", "collaboration", "combined") if benefit and benefit[name] is not None]
    scores = {name: benefit[name]["score"] for name in found} if benefit else {}
    return [
        {"name": SIDES[name], "value": each["value"], "figures": each["low"] is not None and tuple(each.values())}
        for name, each in scores.items()
    ]


def _evaluated(found: Mapping[str, Any], unit: str) -> dict[str, Any]:
    """Return the figure of every side, what the others brought, and all figures of one side."""
    _, figure, name = leading_figure(found)
    leading = {
        side: scores if figure in scores else scores.get("ranking") or {} for side, scores in found["sides"].items()
    }
    rows = []
    for side, scores in leading.items():
        value, interval = scores.get(figure), scores.get(f"{figure}_interval")
        figures = None if value is None or not interval else (value, *interval)
        rows.append({"name": SIDES[side], "value": value, "interval": interval, "figures": figures})
    return {
        "sides": rows,
        "name": name,
        "less_is_better": figure in _LESS_IS_BETTER,
        "gain": _gain(leading, figure),
        "details": score_rows(found, unit),
        "confusion": len(found.get("classes", ())) in range(2, _MOST_CLASSES + 1),
    }


def _gain(sides: Mapping[str, Any], figure: str) -> dict[str, Any] | None:
    """Return by how much the combination, or else the collaboration, is better than the party without the others."""
    with_others = next((name for name in ("combined", "collaboration") if name in sides), None)
    alone = next((name for name in ("local", "own") if name in sides), None)
    if with_others is None or alone is None or None in (sides[with_others].get(figure), sides[alone].get(figure)):
        return None
    gain = sides[with_others][figure] - sides[alone][figure]
    is_better = gain < 0 if figure in _LESS_IS_BETTER else gain > 0
    return {"of": SIDES[with_others], "than": SIDES[alone], "by": gain, "is_better": is_better, "is_same": gain == 0}
