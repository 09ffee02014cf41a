"""The text of a project file: TOML, and comments that say what each entry is for."""

from __future__ import annotations

from datetime import date

from ..._require import require
from ._content import project_content
from ._project import Project
from ._task import Task

__all__ = ["unsigned_text"]

_HEAD = """\
# What all parties and the analyst agree on.  Everyone holds this same file; docs/project-file.md explains each entry.
# After a change the owner signs it again (datacollab project sign), and everyone needs the new file.
"""

_TASK = """\
# kind: classification or regression.  target: the column to predict; all its classes, or what it can be at least
# and at most, in its unit.
"""

_SURVIVAL = """\
# kind survival: times to an event.
"""

_TIMES = """\
# event: the column that says whether it was seen, by the entries of seen and of
# not_seen; all other entries are refused.  time: the column of when it, or the last observation, was; above 0, at most
# maximum, in the unit.  rounding: times are rounded up to its multiples before they leave a party; 0: they leave
# exactly, and a row's own time may tell whose it is.
"""

_EFFECT = """\
# kind effect: of a treatment on an outcome.  treatment: the column that says who was treated, by the entries of treated
# and of untreated; all other entries are refused.
"""

_EFFECT_ON_NUMBER = """\
# outcome: a column of numbers; what they can be at least and at most, in their unit.  Of yes and no, write 1 and 0.
"""

_NONE = """\
# kind none: nothing to predict.  Parties share representations alone, for groups of like rows.
"""

_ANCHOR = """\
# The anchor: rows that all parties obfuscate alike.  The owner makes it once, from public rows (datacollab anchor
# seal); the analyst never sees it.  method: smote, uniform, gaussian or sample.
"""

_RULES = """\
# max_components: the most columns a party's representation may have.  min_rows, min_class_rows: the fewest rows of a
# party, and of each class that it has.  quorum: the fewest parties for a model.  seal_shares: whether only the
# analyst can read shares.  deadline (optional): the last day for shares, such as 2027-01-31.
"""

_COLUMNS = """\
# The columns, in the order of the matrix that each party makes of its table; nothing is learnt from private rows.
# kind number: minimum and maximum are what is possible, in the unit.  kind category: all categories.
# missing: refuse, or fill (with the value of fill; flag_missing = true adds a column that says where).
# outside, for a number out of its range: refuse, clip (to the nearer bound) or missing.  unknown, for a category that
# is not listed: refuse, other (a category of its own) or missing.  More than one in twenty are refused all the same.
"""

_MEMBERS = """\
# Public keys (datacollab keys show).  Compare fingerprints by telephone.  The owner may be a party; the analyst not.
"""

_CHECK_RANGE = (
    "# CHECK: guessed from public rows, half their range added on each side. What is possible, in which unit?\n"
)
_CHECK_TIMES = "# CHECK: guessed from public rows. Which entries mean what? How long can times be, in which unit?\n"
_CHECK_EFFECT = "# CHECK: guessed from public rows. Which entries mean what, and what is possible, in which unit?\n"
_CHECK_CATEGORIES = "# CHECK: found in public rows. Are these all there are?\n"


def unsigned_text(project: Project, *, drafted: bool, ranges_given: bool, target_given: bool) -> str:
    """The project file without its signature."""
    content = project_content(project)
    if project.deadline is not None:
        content["rules"]["deadline"] = project.deadline
    check = {"number": _CHECK_RANGE, "category": _CHECK_CATEGORIES} if drafted else {"number": "", "category": ""}
    check_target = _check_of_task(project.task) if drafted and not target_given else ""
    if ranges_given:
        check["number"] = ""
    parts = [
        _HEAD + "\n" + _table("[project]", content["project"]),
        _words_on(project.task) + check_target + _table("[task]", content["task"]),
        _ANCHOR + _table("[anchor]", content["anchor"]),
        _RULES + _table("[rules]", content["rules"]),
        _COLUMNS.rstrip(),
        *(check[column["kind"]] + _table("[[columns]]", column) for column in content["columns"]),
        _MEMBERS + _table("[members]", {name: content["members"][name] for name in ("owner", "analyst")}),
        _table("[members.parties]", content["members"]["parties"]),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n\n"


def _words_on(task: Task) -> str:
    return {
        "survival": _SURVIVAL + _TIMES,
        "effect": _EFFECT + (_TIMES if task.time else _EFFECT_ON_NUMBER),
        "none": _NONE,
    }.get(task.kind, _TASK)


def _check_of_task(task: Task) -> str:
    if task.time:
        return _CHECK_TIMES
    return {"classification": _CHECK_CATEGORIES, "regression": _CHECK_RANGE, "effect": _CHECK_EFFECT, "none": ""}[
        task.kind
    ]


def _table(header: str, entries: dict[str, str | int | float | bool | date | list[str]]) -> str:
    tomli_w = require("tomli_w", "exchange")
    return f"{header}\n{tomli_w.dumps(entries)}"
