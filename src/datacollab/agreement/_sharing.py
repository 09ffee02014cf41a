"""The agreement on sums under masks: the noise, the common map's size, mask keys and legal entities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from unicodedata import category, normalize

from .._coefficients import coefficients_fault
from .._entries import check_choice, check_limits, check_text, invalid, join_names, refuse_if
from ..bundle import PublicKey
from ..errors import ExchangeError
from ..sums._recommended import MOST_PATTERNS, TABLE, columns_alike
from ..table import Column
from ._task import Task

ANALYST = "analyst"
"""The analyst's name in `Sharing.entities`."""
_APOSTROPHES = "'`\u00b4\u02bc\u2018\u2019\u2032"  # quotation marks, accents, a letter and a prime
_ENTITIES_WITHOUT_WARNING = 5
_FEWEST_ENTITIES = 3
_LIMITS = {"noise": (0.03, 100.0), "epsilon": (0.01, 100.0), "n_components": (2, 1000), "run": (1, None)}
_LIMITS |= {"rounds": (2, 6)}
"""The least and the most of each number; with less noise than .03 a total tells rows."""
_METHODS = ("sample", "uniform")
_RIDGE = "ridge regression"
_TO_PREDICT = "a class or number to predict"
_TIMES = "event and time in [task] (for a draft, --event and --time)"
_NUMBER = "a number: as target or outcome in [task], or as outcome in [sharing] (for a draft, --target or --outcome)"
_EFFECT = f"kind effect (for a draft, --treatment), and {_NUMBER}"
_YES_OR_NO = (
    "two classes to predict, or a number from 0 to 1: minimum = 0.0 and maximum = 1.0 in [task] (for a draft, "
    "--target, and --class twice or --target-range 0 1)"
)
_TWO_CLASSES = "a target of two classes (for a draft, --target, and --class twice)"
VALIDATION = "validation"
META_ANALYSIS = "meta-analysis"
HAZARDS = "proportional hazards"
STUDY = {
    "counts": "a target",
    "description": "a target",
    "least squares": _NUMBER,
    "effect": _EFFECT,
    "survival": _TIMES,
    "additive hazards": _TIMES,
    VALIDATION: _YES_OR_NO,
    META_ANALYSIS: _YES_OR_NO,
    "logistic regression": _TWO_CLASSES,
    "poisson regression": _TIMES,
    HAZARDS: _TIMES,
}
"""Statistics of a study, which make no model, and the needs of each."""
_OF_FACTORS = ("logistic regression", "poisson regression", HAZARDS)
"""Those that explain by some columns; without rounds, by categories alone."""
_GROUPED = ("description", "survival", "effect")
"""Those that have rows in groups; an effect may differ between two."""


ERRORS = ("robust", "classical")


def may_take_rounds(statistics: Sequence[str]) -> bool:
    """Return whether these statistics are one regression that may have rounds."""
    return len(statistics) == 1 and statistics[0] in _OF_FACTORS


def needs_rounds(statistics: Sequence[str]) -> bool:
    """Return whether one of these statistics comes by rounds alone."""
    return HAZARDS in statistics


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """The settings of sums under masks; a project without it shares rows."""

    OPTIONAL: ClassVar = (
        "statistics",
        "by",
        "outcome",
        "factors",
        "rounds",
        "errors",
        "cluster",
        "noise",
        "n_components",
        "run",
        "labelled_by",
        "epsilon",
        "most_rows",
        "logistic_model",
    )

    mask_keys: dict[str, str]
    """Cards (`datacollab.sums.mask_card`), by party."""
    entities: dict[str, str]
    """The legal entity behind each party's key, by party, and that of the analyst as ``"analyst"``."""
    way: str = "sums"
    """Only "sums"."""
    statistics: tuple[str, ...] = (_RIDGE,)
    """The sums: "ridge regression" alone, or some of `STUDY`."""
    by: str | None = None
    """The column of categories, or of classes, that groups rows in a description or by survival, or of two levels
    between which an effect may differ."""
    outcome: str | None = None
    """A column of numbers that least squares or Poisson regression explain, and the effect is on, if the task has none
    of its own."""
    factors: tuple[str, ...] | None = None
    """The columns that explain in a regression of ratios (odds, rates, hazards); all, if left out."""
    rounds: int | None = None
    """Rounds of a regression of ratios, from 2 to 6, with an intercept of each party; numbers explain, too.  Without
    it, one message has counts by pattern of categories, or, for hazards, nothing can be had."""
    errors: str | None = None
    """Standard errors of least squares: "robust", also if left out, or "classical"."""
    cluster: str | None = None
    """A further column of each party's table, which never leaves: rows with the same entry depend on each other."""
    noise: float = TABLE.noise
    """Standard deviation of the noise on the diagonal of the total; from .03, below which totals tell rows."""
    n_components: int = TABLE.n_components
    """The most columns of the common map."""
    run: int = 1
    """Raised, with new mask keys, to share again under the same agreement."""
    labelled_by: str | None = None
    """The one party that adds labelled public rows, if the anchor has targets."""
    epsilon: float | None = None
    """If given, the noise is enough for (epsilon, 1e-5)-differential privacy of one row, and `noise` at least."""
    most_rows: dict[str, int] | None = None
    """The most rows that each party adds, as it says; without them the analyst cannot notice too many."""
    logistic_model: dict[str, float] | None = None
    """The model that is tried by a validation: its coefficients by column, or ``column=level``, and ``intercept``."""

    @staticmethod
    def entry_names(found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of all entries, in the order of the file."""
        return ("way", *Sharing.OPTIONAL, "mask_keys", "entities")

    def __post_init__(self) -> None:
        for name in ("mask_keys", "entities", "most_rows", "logistic_model"):
            if (table := getattr(self, name)) is not None:
                object.__setattr__(self, name, dict(sorted(table.items())))
        if self.logistic_model is not None:
            # 1 and 1.0 are one agreement.
            floats = {name: float(value) + 0.0 for name, value in self.logistic_model.items()}
            object.__setattr__(self, "logistic_model", floats)
        if self.way != "sums":
            raise invalid("[sharing], way", f'expected "sums", got {self.way!r}. To share rows, remove the table.')
        self._check_statistics()
        self._check_purposes()
        for name, (least, most) in _LIMITS.items():
            if (value := getattr(self, name)) is not None:
                why = " With less, a total tells rows." if name == "noise" else ""
                check_limits(f"[sharing], {name}", value, least, most, why=why)
        for name, entity in self.entities.items():
            check_text(f"[sharing.entities], {name}", entity)

    def _check_statistics(self) -> None:
        where = "[sharing], statistics"
        # Unknown words first, as the next sentence would not name them.
        for each in self.statistics:
            check_choice(where, each, (_RIDGE, *STUDY))
        fault = f"expected {_RIDGE} alone, or some of {join_names(STUDY)}, each once."
        refuse_if(self.statistics != (_RIDGE,) and not self.is_study, where, fault)
        check_choice("[sharing], errors", self.errors or ERRORS[0], ERRORS)
        fault = f"they are for {' or '.join(_OF_FACTORS)}, alone in its project. Remove other statistics, or the entry."
        refuse_if(self.rounds is not None and not may_take_rounds(self.statistics), "[sharing], rounds", fault)
        fault = f"{HAZARDS} come by rounds alone, with no other statistic. Write rounds = 2, and remove others."
        refuse_if(needs_rounds(self.statistics) and self.rounds is None, "[sharing], rounds", fault)
        way_on = f"Add {VALIDATION!r} to the list (for a draft, --statistic {VALIDATION})."
        fault = f"{META_ANALYSIS} compares parties' figures of a {VALIDATION}. {way_on}"
        refuse_if(META_ANALYSIS in self.statistics and VALIDATION not in self.statistics, where, fault)

    def _check_purposes(self) -> None:
        """Refuse entries that serve statistics which are not asked for."""
        has_robust = "effect" in self.statistics or ("least squares" in self.statistics and self.errors != "classical")
        needs = {
            "by": (
                not set(_GROUPED).isdisjoint(self.statistics),
                f"it groups rows for {' and '.join(_GROUPED)}, and none is asked for. Remove it, or add one.",
            ),
            "cluster": (
                has_robust,
                "it is for robust errors of an effect or of least squares, and none are asked for. Remove it.",
            ),
            "outcome": (
                not {"least squares", "effect"}.isdisjoint(self.statistics),
                "least squares or effect explain it, and none is asked for. Remove it, or add one.",
            ),
            "factors": (
                not set(_OF_FACTORS).isdisjoint(self.statistics),
                f"they explain in {' and '.join(_OF_FACTORS)}, and none is asked for. Remove the entry, or add one.",
            ),
            "logistic_model": (
                VALIDATION in self.statistics,
                f"{VALIDATION} tries it, and is not asked for. Add it to statistics, or remove the table.",
            ),
        }
        for name, (is_used, fault) in needs.items():
            refuse_if(getattr(self, name) is not None and not is_used, f"[sharing], {name}", fault)

    @property
    def is_study(self) -> bool:
        """Whether statistics of a study are added up, which make no model."""
        return 0 < len(set(self.statistics)) == len(self.statistics) and set(self.statistics) <= set(STUDY)

    @property
    def n_rounds(self) -> int:
        """How many messages each party sends, one after the other."""
        return self.rounds or 1

    @property
    def has_map(self) -> bool:
        """Whether rows are added up in the common map."""
        return not self.is_study or "effect" in self.statistics

    def entity(self, name: str) -> str:
        """Return the legal entity of a party or of the analyst, in a form in which equal ones are equal.

        An apostrophe goes, and other punctuation parts words: "St. Mary's" is "ST MARYS", and "1-2" is not "12".
        """
        folded = self.entities[name]
        # Twice: a letter may have another normal form, or an apostrophe, once it was folded.
        for _ in range(2):
            folded = normalize("NFKC", "".join(each for each in folded if each not in _APOSTROPHES)).casefold()
        return " ".join("".join(" " if category(each)[0] == "P" else each for each in folded).split())


def are_declared_alike(columns: Sequence[Column]) -> bool:
    """Return whether all columns are of one kind, as pixels are: 50 numbers or more, all with one declared range."""
    ranges = [(each.minimum, each.maximum) for each in columns if each.minimum is not None and each.maximum is not None]
    return columns_alike(ranges, sum(each.n_features for each in columns))


def check_sharing(
    sharing: Sharing,
    parties: Mapping[str, PublicKey],
    task: Task,
    columns: Sequence[Column],
    anchor_method: str,
    min_rows: int,
) -> None:
    """Refuse entries that contradict the rest of the project."""
    _check_needs(sharing, task)
    _check_outcome(sharing, task, columns)
    _check_by(sharing, task, columns)
    _check_model(sharing, columns)
    _check_factors(sharing, task, columns)
    refuse_if(
        sharing.has_map and anchor_method not in _METHODS,
        "[anchor], method",
        f"{anchor_method!r}, but sums need an anchor of real public rows or of draws from the declared ranges. Choose "
        f"{' or '.join(_METHODS)}, or remove the table [sharing].",
    )
    _check_parties(sharing, parties, min_rows)
    # Two could subtract their own sums from the total.
    n_entities = len({sharing.entity(name) for name in parties})
    refuse_if(
        n_entities < _FEWEST_ENTITIES,
        "[sharing.entities]",
        f"expected at least {_FEWEST_ENTITIES} different legal entities as parties, got {n_entities}: each of two "
        "learns what the other added. Find a further institution, or remove the table [sharing].",
    )
    is_party = sharing.labelled_by is None or sharing.labelled_by in parties
    fault = f"{sharing.labelled_by!r} is none of the parties {list(parties)}. Name one."
    refuse_if(not is_party, "[sharing], labelled_by", fault)
    _check_mask_keys(sharing, parties)


def _own_number(task: Task) -> str:
    """Return the task's own column of numbers; empty if there is none."""
    if task.kind == "regression":
        return task.target
    return task.outcome


def _check_needs(sharing: Sharing, task: Task) -> None:
    """Refuse statistics whose columns the task does not name."""
    number = sharing.outcome or _own_number(task)
    has = {_TO_PREDICT: task.is_single, "a target": task.columns, _NUMBER: number, _TIMES: task.time}
    has |= {_TWO_CLASSES: len(task.classes) == 2}
    has[_EFFECT] = number and task.treatment
    is_share = _own_number(task) and (task.minimum, task.maximum) == (0.0, 1.0)
    has[_YES_OR_NO] = len(task.classes) == 2 or is_share
    for each in sharing.statistics:
        need = STUDY.get(each, _TO_PREDICT)
        fault = f"{each} needs {need}. Name it, take another statistic, or remove the table [sharing]."
        # Yes and no as classes are the usual slip: least squares take them as numbers.
        if need == _NUMBER and task.classes == (0, 1):
            fault = (
                f'{each} needs a number, and {task.target!r} has classes. In [task] write kind = "regression", '
                "minimum = 0.0 and maximum = 1.0 in place of kind, classes and positive; a draft does so with --task "
                "regression."
            )
        if need == _TWO_CLASSES and (task.minimum, task.maximum) == (0, 1):
            fault = (
                f'{each} needs classes, and {number!r} is a number. In [task] write kind = "classification", '
                "classes = [0, 1] and positive = 1 in place of kind, minimum and maximum; a draft does so with "
                "--class 0 --class 1."
            )
        refuse_if(not has[need], "[sharing], statistics", fault)


def _check_outcome(sharing: Sharing, task: Task, columns: Sequence[Column]) -> None:
    if sharing.outcome is None:
        return
    own = _own_number(task)
    where = "[sharing], outcome"
    refuse_if(own, where, f"the task has a number of its own, {own!r}. Remove the entry.")
    numbers = [each.name for each in columns if each.minimum is not None]
    fault = f"{sharing.outcome!r} is no column of numbers; numbers are in {join_names(numbers) or 'none'}. Name one."
    refuse_if(sharing.outcome not in numbers, where, fault)
    refuse_if(len(columns) == 1, where, "no other column explains it. Declare one.")


def _check_by(sharing: Sharing, task: Task, columns: Sequence[Column]) -> None:
    """Refuse a column that cannot group rows."""
    if sharing.by is None:
        return
    kind = "two categories"
    grouping = [each.name for each in columns if len(each.levels) == 2]
    # Only an effect is compared between two groups.
    if not set(sharing.statistics).isdisjoint(_GROUPED[:2]):
        kind = "categories or classes"
        grouping = [each.name for each in columns if each.categories]
        # Times in groups of those who had the event would say nothing.
        labels_of = dict(task.labels)
        if "survival" in sharing.statistics:
            labels_of.pop(task.event, None)
        grouping += [name for name, labels in labels_of.items() if labels]
    way_on = "Name one."
    if any(sharing.by == each.name and each.minimum is not None for each in columns):
        way_on = f'Name one, or take it as a category: --as "{sharing.by}=category" of a draft.'
    fault = f"{sharing.by!r} is no column of {kind}; there are {join_names(grouping) or 'none'}. {way_on}"
    refuse_if(sharing.by not in grouping, "[sharing], by", fault)


def _check_model(sharing: Sharing, columns: Sequence[Column]) -> None:
    """Refuse a model whose coefficients do not fit the columns."""
    if VALIDATION not in sharing.statistics:
        return
    where = "[sharing.logistic_model]"
    if sharing.logistic_model is None:
        sentence = "Write the table with its coefficients (for a draft, --logistic-model)."
        raise invalid(where, f"{VALIDATION} needs a model. {sentence}")
    fault = coefficients_fault(sharing.logistic_model, {each.name: each.levels for each in columns})
    refuse_if(fault, where, f"{fault}")


def find_factors(sharing: Sharing, task: Task, columns: Sequence[Column]) -> dict[str, int]:
    """Return the levels of each column that explains in a regression of ratios, by name; 1 for a number."""
    n_levels = {each.name: max(len(each.levels), 1) for each in columns if each.levels or sharing.rounds is not None}
    if task.treatment:
        n_levels[task.treatment] = 2
    return {name: n for name, n in n_levels.items() if sharing.factors is None or name in sharing.factors}


def _check_factors(sharing: Sharing, task: Task, columns: Sequence[Column]) -> None:
    """Refuse columns that no regression of ratios explains by, or whose levels make too many patterns."""
    if set(_OF_FACTORS).isdisjoint(sharing.statistics):
        return
    where = "[sharing], factors"
    factors = find_factors(sharing, task, columns)
    strange = join_names(repr(each) for each in sharing.factors or () if each not in factors)
    way_on = (
        "Cut a number into bands, or write rounds = 2, with which numbers explain as they are: for one regression, "
        "alone in its project (a draft does so if it is the only --statistic)."
    )
    refuse_if(strange, where, f"{strange} is no column of categories. {way_on}")
    refuse_if(not factors, where, f"there is no column of categories to explain by. {way_on}")
    # By rounds there are no patterns, but a coefficient for each level.
    if sharing.rounds is not None:
        return
    n_patterns = math.prod(factors.values())
    refuse_if(
        n_patterns > MOST_PATTERNS,
        where,
        f"levels of {join_names(factors)} make {n_patterns} patterns, and each has noise; expected {MOST_PATTERNS} at "
        "most. Name fewer columns, merge levels, or write rounds = 2, for which this has to be the only statistic.",
    )


def _check_parties(sharing: Sharing, parties: Mapping[str, PublicKey], min_rows: int) -> None:
    """Refuse tables by party that lack one, or name somebody else."""
    fault = f"[sharing.entities] keeps {ANALYST!r} for the analyst. Rename the party."
    refuse_if(ANALYST in parties, "[members.parties]", fault)
    tables = [
        ("mask_keys", [*parties], "Each party sends its own: public.key, third line."),
        ("entities", [*parties, ANALYST], "Name the legal entity of each."),
    ]
    if sharing.most_rows is not None:
        tables.append(("most_rows", [*parties], "Ask each party, or remove the table."))
        for name, most in sharing.most_rows.items():
            check_limits(f"[sharing.most_rows], {name}", most, min_rows, why=" No party adds fewer than min_rows.")
    for name, expected, advice in tables:
        where = f"[sharing.{name}]"
        table = getattr(sharing, name)
        missing = join_names(each for each in expected if each not in table)
        refuse_if(missing, where, f"{missing} is missing. {advice}")
        strangers = join_names(repr(each) for each in table if each not in expected)
        refuse_if(strangers, where, f"{strangers} is no member of the project. Remove it.")


def _check_mask_keys(sharing: Sharing, parties: Mapping[str, PublicKey]) -> None:
    """Refuse mask keys that their party did not sign, or that two parties share: masks would not hide either."""
    from ..sums import read_mask_card

    owners: dict[bytes, str] = {}
    for name, member in parties.items():
        try:
            public = read_mask_card(sharing.mask_keys[name], member)
        except ExchangeError as error:
            raise invalid(
                f"[sharing.mask_keys], {name}",
                f"this is no mask key that party {name!r} ({member.fingerprint}) signed ({error.code}). Ask the party "
                "for its public.key, and take the third line.",
            ) from None
        fault = f"{owners.get(public)} and {name} have the same mask key. Ask both for new ones: datacollab keys mask."
        refuse_if(public in owners, "[sharing.mask_keys]", fault)
        owners[public] = name


def sharing_sentences(sharing: Sharing) -> list[str]:
    """Return warnings about the legal entities that take part, for people who sign or share."""
    parties = list(sharing.mask_keys)
    by_entity: dict[str, list[str]] = {}
    for name in parties:
        by_entity.setdefault(sharing.entity(name), []).append(name)
    sentences = []
    # Between few entities each hides among hardly anybody.
    if len(by_entity) < _ENTITIES_WITHOUT_WARNING:
        sentences.append(
            f"Only {len(by_entity)} legal entities take part: if all but one of them work together, they learn what "
            f"the last one added. From {_ENTITIES_WITHOUT_WARNING} on the risk is smaller."
        )
    if sharing.rounds is not None:
        sentences.append(
            f"There are {sharing.rounds} rounds, and a yes is for all of them. In each after the first the analyst "
            "sends the coefficients so far, and the same rows answer. The noise stated is that of all together."
        )
    if META_ANALYSIS in sharing.statistics:
        sentences.append(
            "A meta-analysis is asked for. Unlike other totals, its sums tell each party's own AUC, calibration, and "
            "observed over expected events to anybody who solves them, or that it has too few rows for these. They "
            "have noise of the party's own, and not its name, which their precision may give away."
        )
    sentences += [
        f"Parties {join_names(names)} are one legal entity, and hide one another's rows from nobody within it."
        for names in by_entity.values()
        if len(names) > 1
    ]
    # The analyst sees the total, and a party its own part of it.
    if same := by_entity.get(sharing.entity(ANALYST)):
        sentences.append(
            f"The analyst and party {join_names(same)} are one legal entity. It holds the total and the common map, "
            "and can tell clearly better than by chance whether a known person is among the rows. The noise promises "
            "no anonymity, so what is shared remains personal data."
        )
    return sentences
