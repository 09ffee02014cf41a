"""A party's desk as an application: joining, the table, and all steps after a share."""

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
from ...folder.step_table import SIDES, STEPS, leading_figure, score_rows
from ...steps.party import PartyFolder
from ...table import Column, adjustments_lines, adjustments_text
from ..web import (
    Action,
    Job,
    Page,
    Pages,
    Session,
    StepForm,
    StepPlace,
    create_app,
    is_ticked,
    refusal_of,
    take_file,
    take_optional_file,
    text,
)
from ._desk import Offer, PartyDesk, Seen
from ._owner import KEYS, owner_parts, owner_places
from ._release import APPROVE, OUTBOX, RELEASE, ROUND, SUMS, release_parts

JOIN = "/join"
TABLE = "/table"
WRONG = "/wrong"
MODEL = "/model"
PREDICT = "/predict"
EVALUATE = "/evaluate"
EXPLAIN = "/explain"
DISTIL = "/distil"
FORGET = "/forget"


def party_app(desk: PartyDesk, session: Session) -> ASGIApp:
    """Put a party's desk together."""

    def title() -> str:
        if not desk.has("project.toml"):
            return "A folder that has joined no project yet"
        opened = desk.open_folder()
        return f"Party {opened.name} of project {opened.project.name}"

    def home(request: Request) -> Response | dict[str, Any]:
        if not desk.has("project.toml"):
            return RedirectResponse(KEYS if desk.key is None else JOIN, 303)
        following = None
        if not desk.has_forgotten():  # Without its map a party can go no further.
            following = next((place for place in _places(desk) if not (place.is_done or place.is_beside)), None)
        return {"following": following}

    templates = Path(__file__).parent / "templates"
    tools: dict[str, Any] = {"adjustments_text": adjustments_text, "adjustments_lines": adjustments_lines}
    pages = Pages(
        session, desk.jobs, templates, title, lambda: _places(desk), desk=desk, describe=_describe_column, **tools
    )
    parts = (*owner_parts(desk), *_join_parts(desk), *_table_parts(desk), *release_parts(desk), *_result_parts(desk))
    return create_app(session, pages, desk.jobs, [Page("/", home, "home.html"), *parts])


def _place(verb: str, path: str, is_done: bool, note: str = "", *, is_beside: bool = False) -> StepPlace:
    return StepPlace(path=path, name=STEPS[f"party {verb}"].title, note=note, is_done=is_done, is_beside=is_beside)


def _places(desk: PartyDesk) -> Sequence[StepPlace]:
    """Return the party's steps, and how far it is."""
    has_keys = desk.key is not None
    keys = StepPlace(path=KEYS, name="Keys", is_done=has_keys)
    owner = owner_places(desk)
    if not desk.has("project.toml"):
        return (keys, _place("join", JOIN, False), *owner) if has_keys else (keys, *owner)
    shared = desk.last_share_entry()
    is_shared = shared is not None
    when = f"shared {shared['time'][:10]}" if shared else ""
    # Once the share has left, the steps before it count as done, whatever was looked at since.
    may_leave, is_free = _judge_release(desk)
    findings, is_read = _judge_table(desk)
    leaving = (
        _place("check", RELEASE, is_shared or is_free, may_leave),
        _place("share", APPROVE, is_shared, when),
        _place("check", SUMS, is_shared, when),
    )
    installed = "installed" if desk.has("model.dcmodel") else ""
    after = (
        _place("install", MODEL, bool(installed), installed),
        _place("predict", PREDICT, "predict" in desk.done),
        _place("evaluate", EVALUATE, "evaluate" in desk.done, is_beside=True),
        _place("explain", EXPLAIN, "explain" in desk.done, is_beside=True),
        _place("distil", DISTIL, desk.has("learned.dcstate"), is_beside=True),
        _place("forget", FORGET, desk.has_forgotten(), is_beside=True),
    )
    table = desk.table.name if desk.table else ""
    places = (
        keys,
        _place("join", JOIN, desk.has_anchor, "" if desk.has_anchor else "no anchor"),
        StepPlace(path=TABLE, name="Choose the table", note=table, is_done=is_shared or bool(table)),
        StepPlace(path=WRONG, name="Check the table", note=findings, is_done=is_shared or is_read),
        *leaving,
        StepPlace(path=OUTBOX, name="Outbox", note=when and "to be sent by you", is_done=is_shared),
        StepPlace(path=ROUND, name="Answer a further round", is_done=is_shared and not desk.awaits_rounds),
        *after,
        *owner,
    )
    return [place for place in places if place.path not in desk.left_out]


def _judge_table(desk: PartyDesk) -> tuple[str, bool]:
    """Return the finding on the table in few words, and whether it can be used."""
    seen = desk.seen
    if seen is None:
        return "", False
    if seen.refusal is not None:
        return seen.refusal.code, False
    return f"{seen.n_rows} rows read", True


def _judge_release(desk: PartyDesk) -> tuple[str, bool]:
    """Return in few words whether the share that was looked at may leave, and whether it may."""
    if desk.looked is None:
        return "", False
    if desk.looked.reasons:
        return "may not leave", False
    return "may leave", True


def _join_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield the page and forms of joining: a project is looked at, its fingerprints are compared, and it is joined."""
    step = STEPS["party join"]

    def show(request: Request) -> dict[str, Any]:
        there = None
        if desk.has("project.toml"):
            there = desk.open_folder().project
        offer = desk.offer
        name = offer and _own_name(desk, offer.project)
        files = [desk.path / "owner" / name for name in ("project.toml", "anchor.dcanchor")]
        made = [file if file.is_file() else "" for file in files]
        return {"offer": offer, "there": there, "name": name, "fingerprints": fingerprints, "made": made}

    def fingerprints(project: Project) -> dict[str, str]:
        keys = {"Owner": project.owner, "Analyst": project.analyst}
        return {"Project": project.fingerprint} | {name: key.fingerprint for name, key in keys.items()}

    def look(form: FormData) -> str:
        with ExitStack() as chosen:
            sent = take_file(form, desk.files, step["project"], as_name="project")
            chosen.callback(sent.discard)
            # A copy: the file on the disk may change between the look and the yes.
            with sent.path.open("rb") as source:
                file = desk.files.take(source, "project.toml", as_name="project", endings=(".toml",))
            chosen.callback(file.discard)
            anchor = take_optional_file(form, desk.files, step["anchor"], as_name="anchor", prefix="anchor_")
            if anchor is not None:
                chosen.callback(anchor.discard)
            offer = Offer(project=read_project(file.path)[0], file=file, anchor=anchor)
            # With the anchor the analyst could undo every party's map.
            if _own_name(desk, offer.project) == "analyst" and anchor is not None:
                raise ValueError("You are the analyst, who must not have the anchor. Delete it, and look without it.")
            chosen.pop_all()
        sent.discard()
        desk.replace_offer(offer)
        return JOIN

    def accept(form: FormData) -> None:
        offer = desk.offer
        if offer is None or text(form, "offer") != offer.id:
            raise ExchangeError(
                "NOT_APPROVED", "The project that was shown to you is not the one that waits here. Look at it again."
            )
        if not is_ticked(form, "compared"):
            raise ValueError(
                "Nobody said that the fingerprints were compared. A file says of itself whose it is: compare the "
                "fingerprints with the owner by telephone, and tick the box."
            )

        def work(job: Job) -> None:
            job.say("Checking project and anchor" if offer.anchor else "Checking the project")
            try:
                if offer.project.analyst == desk.key:
                    desk.commands.run("analyst init", project=offer.file.path)
                else:
                    anchor = None if offer.anchor is None else offer.anchor.path
                    desk.join(offer.file.path, anchor, owner=offer.project.owner)
            finally:
                offer.discard()
            job.where = "/"

        # A project that is being joined is nobody's to replace.
        desk.offer = None
        try:
            desk.jobs.start(step.doing, JOIN, work)
        except ExchangeError:
            desk.replace_offer(offer)
            raise

    def decline(form: FormData) -> str:
        desk.replace_offer(None)
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
    """Yield pages and forms of choosing the table, and of findings on it."""
    of = STEPS["party check"]["table"]
    doing = "Looking at the table"

    def choose(form: FormData) -> None:
        chosen = take_file(form, desk.files, of, as_name="table")

        def work(job: Job) -> None:
            # Not before: other work may read the last one meanwhile.
            desk.choose(desk.files.keep(chosen, as_name="table"))
            look(job)

        desk.jobs.start(doing, WRONG, work, at_end=chosen.discard)

    def look(job: Job) -> None:
        table = desk.require_table()
        job.say(f"Reading {table.name}")
        desk.seen = _look_into(desk.open_folder(), table)

    def again(form: FormData) -> None:
        desk.require_table()
        desk.jobs.start(doing, WRONG, look)

    def remove(form: FormData) -> None:
        def work(job: Job) -> None:
            kept = desk.files.find_copy("table")
            desk.files.remove("table")
            # A table elsewhere on the disk stays chosen.
            if desk.table == kept:
                desk.choose(None)

        desk.jobs.start("Removing the copy of the table", TABLE, work)

    def wrong(request: Request) -> dict[str, Any]:
        seen = desk.seen
        adjusted = {}
        if seen is not None:
            adjusted = seen.adjusted.get("columns", {})
        project = desk.open_folder().project
        fills = project.fills_missing
        columns = [_describe_column(each, fills) | {"found": adjusted.get(each.name, {})} for each in project.columns]
        return {"table": desk.require_table(), "seen": seen, "columns": columns, "fills": fills}

    yield Page(TABLE, template="table.html")
    yield Action(TABLE, choose)
    yield Action("/table/remove", remove)
    yield Page(WRONG, wrong, "wrong.html")
    yield Action(WRONG, again)


def _look_into(folder: PartyFolder, table: Path) -> Seen:
    """Return findings on a table; a refusal is one of them here."""
    lines: list[str] = []
    try:
        # The page shows how the file was read, be it plain or not.
        with notices_to(lambda line, is_plain: lines.append(line)):
            encoded = folder.encode(table)
    except ExchangeError as error:
        return Seen(refusal=refusal_of(error), understood=" ".join(lines))
    targets: dict[str, int] = {}
    if folder.project.task.kind == "classification" and encoded.target is not None:
        counts = Counter(encoded.target.tolist())
        targets = {str(name): counts[name] for name in folder.project.task.classes}
    adjusted = encoded.adjusted.to_dict(fills=folder.project.fills_missing)
    return Seen(n_rows=encoded.n_rows, adjusted=adjusted, targets=targets, understood=" ".join(lines))


_RULES = {
    "refuse": "others are refused",
    "clip": "others become the nearer bound",
    "missing": "others count as missing",
    "other": "others count as “other”",
}


def _describe_column(column: Column, fills: bool) -> dict[str, Any]:
    if column.kind == "number":
        allowed = f"{column.minimum:.10g} to {column.maximum:.10g} {column.unit}".rstrip()
        rule = column.outside
    else:
        allowed = ", ".join(column.categories)
        rule = column.unknown
    missing = f"filled in with {column.fill}" if fills else "left missing"
    if column.missing == "refuse":
        missing = "refused"
    return {"name": column.name, "kind": column.kind, "allowed": allowed, "rule": _RULES[rule], "missing": missing}


_PREDICTIONS = "predictions.csv"
_EXPLANATIONS = "explanations.csv"
_FIGURE = "explanations.png"
_USUAL = ("", "the usual: both together, where they were combined")
_OF_SUMS = ("combined", "local", "collaboration")
_MOST_COLUMNS = 15
_MOST_CLASSES = 12
"""Columns and classes of a table that fits on a screen."""


def _result_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms of the steps after a share."""

    def install(job: Job, file: Path, **options: Any) -> Any:
        return desk.open_folder().install(file, progress=job.say, **options)

    def distil(job: Job, file: Path, **options: Any) -> Any:
        job.say("Checking the anchor predictions, and distilling a model")
        return desk.open_folder().distil(file, **options)

    def forget(form: FormData) -> None:
        opened = desk.open_folder()
        # A click alone destroys nothing.
        if text(form, "name") != opened.name:
            raise ValueError(f"Nothing was destroyed. If you mean it, write the party's name, {opened.name}.")

        def work(job: Job) -> None:
            opened.forget()
            job.say("Removing the copies that this desk keeps")
            desk.forget_copies()

        desk.jobs.start(STEPS["party forget"].doing, FORGET, work)

    yield Page(MODEL, lambda request: {"sides": _benefits(desk.done.get("install", {}).get("benefit"))}, "model.html")
    yield desk.form(StepForm(verb="install", path=MODEL, file="model", fields=("public",)), install)
    yield from _predict_parts(desk)
    yield from _evaluate_parts(desk)
    yield from _explain_parts(desk)
    yield Page(DISTIL, template="distil.html")
    yield desk.form(StepForm(verb="distil", path=DISTIL, file="answers", fields=("tree",)), distil)
    yield Page(FORGET, template="forget.html")
    yield Action(FORGET, forget)


def _list_sides(desk: PartyDesk, *sides: str) -> list[tuple[str, str]]:
    """Return the choices of a model, by their names and in words."""
    return [_USUAL, *((side, SIDES[side]) for side in sides if not desk.of_sums or side in _OF_SUMS)]


def _is_own_table(desk: PartyDesk, file: Path) -> bool:
    """Return whether a file is the very table that was chosen: scores on rows that were shared are too good."""
    return desk.table is not None and desk.table.is_file() and filecmp.cmp(desk.table, file, shallow=False)


def _predict_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    def predict(
        job: Job, file: Path, *, tested: Path | None = None, find: float | None = None, **options: Any
    ) -> dict[str, Any]:
        adjusted: dict[str, Any] = {}
        opened = desk.open_folder()
        output = desk.files.make_folder() / _PREDICTIONS
        result: dict[str, Any] = {"adjusted": adjusted, "threshold": None, "were_shared": False}
        if tested is not None:
            job.say(f"Choosing a threshold on {tested.name}")
            if find is None:
                find = STEPS["party predict"]["find"].default
            threshold = opened.threshold(tested, using=options.get("using"), find=find)
            options["flag_from"] = threshold["least"]
            result |= {"threshold": threshold, "were_shared": _is_own_table(desk, tested)}
        job.say(f"Predicting {file.name}")
        n_rows = opened.predict(file, output, tell=lambda found: adjusted.update(found.to_dict()), **options)
        classes = [str(name) for name in opened.project.task.classes]
        return result | {"n_rows": n_rows} | _count_predictions(output, classes)

    sides = ("local", "collaboration", "distilled")
    yield Page(PREDICT, lambda request: {"using": _list_sides(desk, *sides)}, "predict.html")
    form = StepForm(
        verb="predict",
        path=PREDICT,
        file="table",
        also="tested",
        fields=("using", "keep", "find"),
        writes=(_PREDICTIONS,),
    )
    yield desk.form(form, predict)
    yield from _file_parts(desk, "predict", PREDICT, (_PREDICTIONS,))


def _evaluate_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    def show(request: Request) -> dict[str, Any]:
        scores = desk.done.get("evaluate")
        unit = desk.open_folder().project.task.unit
        values = {"using": _list_sides(desk, *SIDES), "unit": unit, "found": scores, "words": SIDES}
        if scores is None:
            return values
        return values | _summarise_scores(scores, unit)

    def evaluate(job: Job, file: Path, **options: Any) -> Any:
        job.say(f"Predicting {file.name}, by all models that are here")
        return desk.open_folder().evaluate(file, **options) | {"were_shared": _is_own_table(desk, file)}

    yield Page(EVALUATE, show, "evaluate.html")
    yield desk.form(StepForm(verb="evaluate", path=EVALUATE, file="table", fields=("using", "find")), evaluate)


def _explain_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    def show(request: Request) -> dict[str, Any]:
        explained = desk.done.get("explain")
        kept = [name for name in (_EXPLANATIONS, _FIGURE) if (desk.files.path / name).is_file()]
        importance = []
        figure = ""
        if explained is not None:
            importance = list(explained.importance().items())
            if _FIGURE in kept:  # not an earlier desk's, which would be of other rows
                figure = _FIGURE
        task = desk.open_folder().project.task
        return {
            "classes": [("", f"the usual: {task.positive or 'all'}"), *((name, name) for name in task.classes)],
            "found": explained,
            "importance": importance[:_MOST_COLUMNS],
            "n_columns": len(importance),
            "kept": kept,
            "place": desk.files.path,
            "file": _EXPLANATIONS,
            "figure": figure,
        }

    def check_class(options: dict[str, Any]) -> None:
        name = options.get("of_class")
        if name is not None and name not in map(str, desk.open_folder().project.task.classes):
            raise ValueError("There is no such class in the project. Choose one of the list.")

    def explain(job: Job, file: Path, **options: Any) -> Any:
        opened = desk.open_folder()
        folder = desk.files.make_folder()
        figure = None
        # A picture is of one class; without matplotlib, or of several, there are the figures of the page.
        if ("of_class" in options or len(opened.project.task.classes) <= 2) and find_spec("matplotlib"):
            figure = folder / _FIGURE
        return opened.explain(
            file,
            folder / _EXPLANATIONS,
            figure=figure,
            progress=lambda done, n_rows: job.say(f"Row {done} of {n_rows}", done / n_rows),
            **options,
        )

    yield Page(EXPLAIN, show, "explain.html")
    form = StepForm(
        verb="explain",
        path=EXPLAIN,
        file="table",
        fields=("most_rows", "of_class", "log_odds", "keep"),
        check=check_class,
        writes=(_EXPLANATIONS, _FIGURE),
    )
    yield desk.form(form, explain)
    yield from _file_parts(desk, "explain", EXPLAIN, (_EXPLANATIONS, _FIGURE))


def _file_parts(desk: PartyDesk, verb: str, path: str, names: Sequence[str]) -> Iterator[Page | Action]:
    """Yield downloads of files that a step has written, and the form that removes them."""

    def remove(form: FormData) -> None:
        desk.jobs.start("Removing what was written", path, lambda job: desk.remove(verb, names))

    def download(name: str) -> Response:
        file = desk.files.path / name
        # A file of an earlier desk may be of another table.
        if verb not in desk.done or not file.is_file():
            raise FileNotFoundError("There is no such file to be looked at. Give a table first.")
        if name.endswith(".csv"):
            return FileResponse(file, filename=name)
        return FileResponse(file)  # A picture stands in the page.

    yield Action(f"{path}/remove", remove)
    for name in names:
        yield Page(f"{path}/{name}", lambda request, name=name: download(name))  # type: ignore[misc]


def _count_predictions(file: Path, classes: Sequence[str]) -> dict[str, Any]:
    """Return how many rows of predictions are of each class, and how many are flagged; none without classes."""
    if not classes:
        return {"classes": {}, "n_flagged": 0}
    # As `write_table` wrote it: semicolons come with a mark of UTF-8.
    with file.open("rb") as source:
        has_mark = source.read(3) == BOM_UTF8
    delimiter = ";" if has_mark else ","
    with file.open(encoding="utf-8-sig", newline="") as lines:
        counts = Counter((row["prediction"], row.get("flagged")) for row in csv.DictReader(lines, delimiter=delimiter))
    of_class = {name: sum(n for (called, _), n in counts.items() if called == name) for name in classes}
    return {"classes": of_class, "n_flagged": sum(n for (_, flagged), n in counts.items() if flagged == "True")}


_LESS_IS_BETTER = ("log_loss", "rmse")


def _benefits(benefit: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the score of each side, with the ends of its interval if it has one."""
    rows = []
    for side in ("local", "collaboration", "combined"):
        if benefit and benefit[side] is not None:
            score = benefit[side]["score"]
            figures = score["low"] is not None and tuple(score.values())
            rows.append({"name": SIDES[side], "value": score["value"], "figures": figures})
    return rows


def _summarise_scores(evaluation: Mapping[str, Any], unit: str) -> dict[str, Any]:
    """Return the figure of every side, the gain by the others, and all figures of one side."""
    _, figure, name = leading_figure(evaluation)
    leading = {}
    rows = []
    for side, scores in evaluation["sides"].items():
        # Figures of ranks are kept apart, as only two classes have them.
        if figure not in scores:
            scores = scores.get("ranking") or {}
        leading[side] = scores
        value = scores.get(figure)
        interval = scores.get(f"{figure}_interval")
        figures = None
        if value is not None and interval:
            figures = (value, *interval)
        rows.append({"name": SIDES[side], "value": value, "interval": interval, "figures": figures})
    return {
        "sides": rows,
        "name": name,
        "less_is_better": figure in _LESS_IS_BETTER,
        "gain": _gain(leading, figure),
        "details": score_rows(evaluation, unit),
        "confusion": len(evaluation.get("classes", ())) in range(2, _MOST_CLASSES + 1),
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
