"""Pages of the reference: one for every public name, made from what the rooms export and their docstrings."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError

import datacollab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

EVERYDAY = {
    "All roles in one process, and the baselines": (
        "DataCollaborationClassifier DataCollaborationRegressor DataCollaborationSurvival DataCollaborationClusterer "
        "PartyStratifiedKFold Local Central simulate_parties find_threshold"
    ),
    "Sums under masks: parties add up, and the analyst learns the total alone": (
        "CommonSpace MaskKey SumsPlan SumsModel CombinedModel"
    ),
    "The anchor: rows that all parties may know": (
        "SMOTEAnchor SampleAnchor GaussianAnchor UniformAnchor find_private_rows"
    ),
    "Rows: a party hides its rows, audits the share, and shares once": "Party obfuscator audit choose Share",
    "Rows: the analyst aligns the shares and trains": "Analyst Collaboration",
    "Integration methods": "KTI KTICV LTI GEP MPP ODC",
    "Graphs between anchor rows": "GeometricGraph TargetSimilarityGraph TargetDissimilarityGraph",
    "Rows: each party gets its map and the model": "PartyModel",
    "Progress": "ProgressBar",
    "Errors": "DataCollabError",
}
"""The names of `datacollab` itself by role, sums first."""

ROOMS = (
    *("anchor", "party", "share", "sums", "study", "analyst", "model", "estimators", "effects", "survival", "targets"),
    *("datasets", "progress", "testing", "errors", "linalg", "bundle", "risk.attacks", "risk.audit", "choice"),
    *("table", "agreement", "folder.log", "folder.ledger", "by_sums.plan", "steps.party", "steps.analyst"),
)
"""The rooms whose names are public."""

BEHIND = {"party": ("own",)} | {
    f"steps.{side}": tuple(f"{room}.{side}" for room in ("folder", "by_sums", "by_rows"))
    for side in ("party", "analyst")
}
"""Rooms whose names users import from another one."""


@dataclass(frozen=True)
class Name:
    """A public name, the room that users import it from, and its object."""

    full: str
    room: str
    value: Any

    @property
    def short(self) -> str:
        """Return the name without its room."""
        return self.full.rpartition(".")[2]

    @property
    def others(self) -> list[str]:
        """Return other full names of the same object, which links may have."""
        names = {f"datacollab.{self.room}.{self.short}"}
        if inspect.isclass(self.value) or inspect.isfunction(self.value):
            names.add(f"{self.value.__module__}.{self.value.__qualname__}")
        return sorted(names - {self.full})


@cache
def public_names() -> dict[str, Name]:
    """Return all public names by the room that users import them from."""
    everyday = {name: getattr(datacollab, name) for names in EVERYDAY.values() for name in names.split()}
    if set(everyday) != set(datacollab.__all__) - {"__version__", *ROOMS}:
        raise ExtensionError(f"EVERYDAY in {__file__} and datacollab.__all__ differ")
    found = {}
    for room in ROOMS:
        module = importlib.import_module(f"datacollab.{room}")
        for short in module.__all__:
            value = getattr(module, short)
            full = f"datacollab.{short}" if everyday.get(short) is value else f"datacollab.{room}.{short}"
            found[full] = Name(full, room, value)
    return found


@cache
def comments_of_constants(room: str) -> dict[str, list[str]]:
    """Return the strings below the constants of a room."""
    modules = []
    for each in (room, *BEHIND.get(room, ())):
        package = importlib.import_module(f"datacollab.{each}")
        names = pkgutil.walk_packages(getattr(package, "__path__", ()), f"{package.__name__}.")
        modules += [package.__name__, *(found.name for found in names)]
    said = {}
    for module in modules:
        said |= strings_below(Path(str(importlib.util.find_spec(module).origin)))
    return said


def strings_below(path: Path) -> dict[str, list[str]]:
    """Return the lines of the string below each constant of a module; Sphinx's own analysis takes twice as long."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    said = {}
    for constant, below in pairwise(body):
        if not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)):
            continue
        if not isinstance(below.value.value, str):
            continue
        names = constant.targets if isinstance(constant, ast.Assign) else [getattr(constant, "target", None)]
        lines = [*inspect.cleandoc(below.value.value).split("\n"), ""]
        said |= {name.id: lines for name in names if isinstance(name, ast.Name)}
    return said


def own_members(kind: type) -> list[str]:
    """Return public methods and properties that this package documents; scikit-learn documents its own."""
    members = []
    for name, value in inspect.getmembers_static(kind):
        function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
        defined = getattr(inspect.unwrap(function), "__module__", None) or ""
        documented = callable(function) and inspect.getdoc(function)
        if not name.startswith("_") and defined.startswith("datacollab") and documented and not inspect.isclass(value):
            members.append(name)
    return members


def heading(text: str, line: str = "=") -> list[str]:
    return [text, line * len(text), ""]


def page_of(name: Name) -> str:
    """Return the source of the page of one name."""
    lines = [*heading(name.short), f".. currentmodule:: {name.full.rpartition('.')[0]}", ""]
    if inspect.isclass(name.value):
        directive = "autoexception" if issubclass(name.value, BaseException) else "autoclass"
        members = ", ".join(own_members(name.value))
        lines += [f".. {directive}:: {name.short}", *([f"   :members: {members}"] if members else []), ""]
    elif callable(name.value):
        lines += [f".. autofunction:: {name.short}", ""]
    else:
        lines += [f".. py:data:: {name.short}", ""]
        lines += [f"   {line}".rstrip() for line in comments_of_constants(name.room).get(name.short, [])] + [""]
    return "\n".join([*lines, f".. minigallery:: {name.full}", "   :add-heading: In the gallery", ""])


def summary_of(name: Name) -> str:
    if callable(name.value):
        text = inspect.getdoc(name.value) or ""
    else:
        text = "\n".join(comments_of_constants(name.room).get(name.short, []))
    return " ".join(re.sub(r" ?\[\w+\]_", "", text.split("\n\n")[0]).split())


def table_of(names: list[Name]) -> list[str]:
    """Return a table of names, each with the first sentence of its docstring."""
    lines = [".. list-table::", "   :class: names", "   :widths: auto", ""]
    for name in names:
        lines += [f"   * - :py:obj:`~{name.full}`", f"     - {summary_of(name)}"]
    return [*lines, ""]


def toctree(entries: list[str]) -> list[str]:
    return [".. toctree::", "   :hidden:", "", *(f"   {entry}" for entry in entries), ""]


def pages() -> Iterator[tuple[str, str]]:
    """Return the path and the source of every page of the reference."""
    names = public_names()
    everyday = heading("Everyday names")
    everyday += ["``import datacollab as dc`` has these, by role and in the order of the protocol.", ""]
    for title, shorts in EVERYDAY.items():
        everyday += [*heading(title, "-"), *table_of([names[f"datacollab.{short}"] for short in shorts.split()])]
    everyday += toctree([full for full in names if full.count(".") == 1])
    yield "datacollab", "\n".join(everyday)

    index = [*heading("Python"), "Every public name, from its docstring. Everyday names are in ``datacollab`` itself,"]
    index += ["the others in rooms.", ""]
    index += [".. list-table::", "   :class: names", "   :widths: auto", "", "   * - :doc:`datacollab <datacollab>`"]
    index += ["     - The everyday names, by role."]
    for room in ROOMS:
        module = importlib.import_module(f"datacollab.{room}")
        first = " ".join((module.__doc__ or "").split("\n\n")[0].split())
        of_room = [name for name in names.values() if name.room == room]
        index += [f"   * - :doc:`datacollab.{room} <datacollab.{room}>`", f"     - {first}"]
        lines = [*heading(f"datacollab.{room}"), f".. py:module:: datacollab.{room}", ""]
        lines += [inspect.cleandoc(module.__doc__ or ""), "", *table_of(of_room)]
        lines += toctree([name.full for name in of_room if name.full.count(".") > 1])
        yield f"datacollab.{room}", "\n".join(lines)
    yield "index", "\n".join([*index, "", *toctree(["datacollab", *(f"datacollab.{room}" for room in ROOMS)])])
    for name in names.values():
        yield name.full, page_of(name)


def write_pages(app: Sphinx) -> None:
    """Write the sources into the folder ``api``; those that are the same stay untouched, and are not read again."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    written = set()
    for where, source in pages():
        path = folder / f"{where}.rst"
        written.add(path)
        if not path.exists() or path.read_text(encoding="utf-8") != source:
            path.write_text(source, encoding="utf-8")
    for path in set(folder.glob("*.rst")) - written:
        path.unlink()


def cite(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Let keys of the bibliography, such as [Cox1972], lead there; numbers stand for references of the docstring."""
    for number, line in enumerate(lines):
        lines[number] = re.sub(r"(?<!\.\. )\[([A-Z]\w+\d{4}\w?)\]_", r":doc:`[\1] </bibliography>`", line)


def note_other_names(app: Sphinx, env: BuildEnvironment) -> None:
    """Let links by other names of the same object find its page."""
    domain = env.domains.python_domain
    for name in public_names().values():
        entry = domain.objects.get(name.full)
        if entry is None:
            raise ExtensionError(f"{name.full} has no page")
        below = [each for each in domain.objects if each.startswith(f"{name.full}.")]
        for other in name.others:
            for each in (name.full, *below):
                found = domain.objects[each]
                domain.objects.setdefault(other + each.removeprefix(name.full), found._replace(aliased=True))


def find_by_name_alone(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, shown: nodes.TextElement
) -> nodes.reference | None:
    """Find what a docstring mentions by its name alone, where one room has such a name."""
    first, dot, rest = node.get("reftarget", "").partition(".")
    found = [name.full for name in public_names().values() if name.short == first]
    if node.get("refdomain") != "py" or len(found) != 1:
        return None
    target = f"{found[0]}{dot}{rest}"
    return env.domains.python_domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, shown)


def add_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Let a page have the anchors of either way to import its name: pages of source code lead back by any of them."""
    name = public_names().get(app.env.docname.removeprefix("api/"))
    if name is not None:
        for signature in doctree.findall(addnodes.desc_signature):
            below = next(
                (each.removeprefix(name.full) for each in signature["ids"] if each.startswith(name.full)), None
            )
            if below is not None:
                imports = (f"datacollab.{name.short}{below}", f"datacollab.{name.room}.{name.short}{below}")
                signature["ids"] += [each for each in imports if each not in signature["ids"]]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", cite)
    app.connect("doctree-read", add_anchors)
    app.connect("missing-reference", find_by_name_alone)
    app.connect("env-updated", note_other_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
