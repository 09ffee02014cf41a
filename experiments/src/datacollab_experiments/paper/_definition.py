"""Definitions of experiments, as data, and their cells: equal computations are one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from ..harness import cell_id
from ._condition import Condition
from ._methods import BASELINES, METHODS, specification

# The paper's attacks.
ATTACKS = ("LR", "MLP", "PINV")

# The attacks of this library's audit, all together; see `score_risks`.
AUDIT = "audit"

_TOP = {"title", "source", "notes", "condition", "axes", "series", "methods", "attacks", "presets"}
_SETTINGS = {setting.name for setting in fields(Condition)}
_PRESET = {"seeds", "condition", "axes", "series", "methods", "attacks", "notes"}


@dataclass(frozen=True, kw_only=True)
class Attacks:
    """Attacks on the parties of a trial, and their inputs.

    Attributes
    ----------
    names : tuple of str
        Some of "LR", "MLP", "PINV" and "audit".  All else is about the first three: the audit has no judge, and its
        attacker knows all anchor rows.
    leaked_targets : tuple of int
        Anchor rows with these targets are known to the attacker, beside their representations.
    n_judge : int
        Rows, used nowhere else, that the judge of the reconstructions is trained on.
    n_per_target : int
        Of the parties' own rows, as many are reconstructed for each target that was not leaked.
    n_attacked : int
        0 attacks the rows of all parties, each with that party's leaked pairs.  Otherwise one more party is attacked
        instead, which has as many rows, all of them used nowhere else: `n_per_target` of each target that was not
        leaked, and the others as they come.
    """

    names: tuple[str, ...] = ATTACKS
    leaked_targets: tuple[int, ...] = (0, 1, 2)
    n_judge: int = 5000
    n_per_target: int = 50
    n_attacked: int = 0

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in (*ATTACKS, AUDIT):
                raise ValueError(f"Unknown attack {name!r}; known attacks: {', '.join((*ATTACKS, AUDIT))}.")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One experiment at one preset: conditions, methods and attacks, and seeds.

    Attributes
    ----------
    source : str
        Labels of the tables and figures that it reproduces.
    notes : tuple of str
        How it departs from its source.
    methods : mapping of str to mapping
        Names in the tables.  The mapping is empty for a name that the library knows, and otherwise has a "class", such
        as ``"my_package.my_module:MyIntegrator"``, and its parameters.
    """

    name: str
    preset: str
    title: str
    source: str = ""
    notes: tuple[str, ...] = ()
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    conditions: tuple[Condition, ...]
    seeds: tuple[int, ...]
    attacks: Attacks | None = None

    def __post_init__(self) -> None:
        for name, own in self.methods.items():
            if not own and name not in METHODS and name not in BASELINES:
                raise ValueError(
                    f"Experiment {self.name!r}: unknown method {name!r}; known methods: "
                    f"{', '.join((*BASELINES, *METHODS))}. For one of your own give its class, "
                    f"{name!r} = {{ class = 'package.module:Class' }}."
                )
            if own and name in (*METHODS, *BASELINES):
                raise ValueError(
                    f"Experiment {self.name!r}: {name!r} is one of the library's methods; give yours another name."
                )
            if own and "class" not in own:
                raise ValueError(f"Experiment {self.name!r}: method {name!r} has parameters but no class.")

    def with_methods(self, methods: Mapping[str, Mapping[str, Any]]) -> Experiment:
        """Return the experiment with more methods."""
        return replace(self, methods={**self.methods, **methods})

    def to_json(self) -> str:
        """Everything, in a form that `from_json` reads."""
        return json.dumps(asdict(self), sort_keys=False)

    @classmethod
    def from_json(cls, text: str) -> Experiment:
        """Read the text that `to_json` wrote."""
        entries = json.loads(text)
        attacks = entries.pop("attacks")
        return cls(
            conditions=tuple(Condition(**condition) for condition in entries.pop("conditions")),
            attacks=_make_attacks(attacks),
            **{key: _frozen(value) for key, value in entries.items()},
        )


def _make_attacks(entries: Mapping[str, Any] | None) -> Attacks | None:
    if not entries:
        return None
    return Attacks(**{key: _frozen(value) for key, value in entries.items()})


def experiment_names() -> tuple[str, ...]:
    """Names of the experiments that come with the library."""
    folder = resources.files(__package__) / "definitions"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def definition_text(source: str | Path) -> str:
    """Text of a definition: by the name of an experiment that comes with the library, or by the path of a TOML file.

    Raises
    ------
    ValueError
        When there is neither.
    """
    if str(source) in experiment_names():
        return (resources.files(__package__) / "definitions" / f"{source}.toml").read_text(encoding="utf-8")
    if not Path(source).is_file():
        raise ValueError(
            f"There is no experiment {str(source)!r}; there are {', '.join(experiment_names())}, and TOML files of "
            "your own by their path."
        )
    return Path(source).read_text(encoding="utf-8")


def preset_names(source: str | Path) -> tuple[str, ...]:
    return tuple(tomllib.loads(definition_text(source)).get("presets", {}))


def load_experiment(source: str | Path, preset: str) -> Experiment | None:
    """Read a definition at one preset; None where the definition does not have the preset.

    Raises
    ------
    ValueError
        When there is no such definition, it is not TOML, it holds an unknown key or value, or the preset leaves out a
        data set or method of one's own.  The message names the file and the key.
    """
    name = Path(source).stem
    try:
        entries = tomllib.loads(definition_text(source))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"Experiment {name!r}: not a TOML file ({error}).") from None
    _refuse_unknown(entries, _TOP, f"Experiment {name!r}")
    presets = entries.pop("presets", {})
    for known, settings in presets.items():
        _refuse_unknown(settings, _PRESET, f"Experiment {name!r}, preset {known!r}")
    if preset not in presets:
        return None
    chosen = presets[preset]
    # A preset overrides single entries, and replaces methods as a whole.
    attacks = _merge("attacks", entries, chosen)
    try:
        experiment = Experiment(
            name=name,
            preset=preset,
            title=entries.get("title", name),
            source=entries.get("source", ""),
            notes=(*entries.get("notes", ()), *chosen.get("notes", ())),
            methods=chosen.get("methods", entries.get("methods", {})),
            conditions=_conditions(
                _merge("condition", entries, chosen),
                _merge("axes", entries, chosen),
                chosen.get("series", entries.get("series", [{}])),
            ),
            seeds=_seeds(chosen.get("seeds", 1)),
            attacks=_make_attacks(attacks),
        )
    except TypeError as error:
        # A dataclass says which key it does not know.
        raise ValueError(f"Experiment {name!r}, preset {preset!r}: {error}.") from None
    _refuse_left_out(entries, chosen, preset, experiment)
    return experiment


def _refuse_unknown(entries: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(entries) - known)
    if unknown:
        raise ValueError(
            f"{where}: unknown key {', '.join(map(repr, unknown))}; known keys: {', '.join(sorted(known))}."
        )


def _refuse_left_out(
    entries: Mapping[str, Any], chosen: Mapping[str, Any], preset: str, experiment: Experiment
) -> None:
    """Refuse a preset that would run without the data set or method that somebody wrote into a definition."""
    datasets = {}
    for key in ("condition", "axes"):
        for place, part in ((f"[{key}]", entries), (f"{key} of [presets.{preset}]", chosen)):
            if "dataset" in part.get(key, {}):
                given = part[key]["dataset"]
                datasets[place] = [given] if isinstance(given, str) else given
    run = {condition.dataset for condition in experiment.conditions}
    for place, given in datasets.items():
        # Names of the library's data sets differ by preset; whoever writes a path wants it to be run.
        if left_out := [each for each in given if ":" in str(each) and each not in run]:
            last = list(datasets)[-1]
            raise ValueError(
                f"Experiment {experiment.name!r}, preset {preset!r}: dataset = {left_out!r} of {place} would not be "
                f"run, as {last} has dataset = {datasets[last]!r} in its place. Delete that one, or write yours there."
            )
    for method, settings in entries.get("methods", {}).items():
        is_own = str(settings.get("class", "datacollab")).split(":")[0].split(".")[0] != "datacollab"
        if is_own and method not in experiment.methods:
            raise ValueError(
                f"Experiment {experiment.name!r}, preset {preset!r}: method {method!r} of [methods] would not be run, "
                f"as methods of [presets.{preset}] take its place. Write it there too."
            )


def _merge(key: str, entries: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    return {**entries.get(key, {}), **chosen.get(key, {})}


def _conditions(
    fixed: Mapping[str, Any], axes: Mapping[str, Any], series: Sequence[Mapping[str, Any]]
) -> tuple[Condition, ...]:
    """Every combination of the axes, for each of the series; each condition once."""
    conditions: dict[Condition, None] = {}
    for further in series:
        grid = {**axes, **further}
        for name, values in grid.items():
            if not isinstance(values, list):
                raise ValueError(f"Axis {name!r}: expected a list, such as {name} = [{values!r}]; got {values!r}.")
        for values in product(*grid.values()):
            settings = {**fixed, **dict(zip(grid, values, strict=True))}
            if unknown := sorted(set(settings) - _SETTINGS):
                known = ", ".join(sorted(_SETTINGS))
                raise ValueError(f"Unknown setting of a condition {', '.join(map(repr, unknown))}; known: {known}.")
            # TOML has no null: "real" stands for anchors that are all real rows.
            if settings.get("n_sources") == "real":
                settings["n_sources"] = None
            conditions[Condition(**settings)] = None
    return tuple(conditions)


def _seeds(given: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(given, int):
        return tuple(range(given))
    return tuple(dict.fromkeys(given))


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return value


# To be raised whenever the same definition would give other scores, so that older rows are not taken for new ones.
PROTOCOL = 1

_OBFUSCATION = ("n_anchors", "n_sources", "obfuscator", "n_components", "n_neighbors", "out_of_sample")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method, or one attack, under one condition: all that determines a score but the seed.

    Attributes
    ----------
    own : mapping
        Class and parameters of a method that the library does not know.
    """

    condition: Condition
    kind: str
    name: str
    own: Mapping[str, Any]
    attacks: Attacks | None = None

    def definition(self) -> dict[str, Any]:
        """All that determines the score but the seed, without settings that do not matter for it.

        A party's model alone does not depend on its obfuscator, nor a linear method on the width of a kernel: so
        equal computations of several conditions and experiments are one.
        """
        condition = self.condition
        drawn: dict[str, Any] = {
            key: getattr(condition, key) for key in ("dataset", "n_parties", "n_per_party", "n_test")
        } | _split(condition)
        if self.is_baseline:
            method: Any = {"class": self.name}
            # Local and Central see no public rows, so that their definition has none.
            if self.name == "Local+Public":
                drawn |= {"n_public": condition.n_public, **_defence(condition)}
        else:
            drawn |= {key: getattr(condition, key) for key in _OBFUSCATION} | _defence(condition)
            # Only UMAP has two ways to map new rows.
            if condition.obfuscator != "umap":
                del drawn["out_of_sample"]
            # The default has no entry: hashes of rows from before there was the choice stay.
            if condition.obfuscator == "kernel-pca" and condition.kernel_width != "median-squared":
                drawn["kernel_width"] = condition.kernel_width
            if self.attacks is not None and self.name == AUDIT:
                method = {"class": self.name}
            elif self.attacks is not None:
                method = {"class": self.name, **asdict(self.attacks)}
                # Which other attacks run beside this one changes nothing.
                del method["names"]
                # Nor has this default one, for the same reason.
                if not self.attacks.n_attacked:
                    del method["n_attacked"]
            else:
                method = dict(self.own) or specification(self.name, condition)
        return {"protocol": PROTOCOL, "kind": self.kind, "method": method, "trial": drawn}

    @property
    def is_baseline(self) -> bool:
        """Whether nobody obfuscates."""
        return self.kind == "method" and not self.own and self.name in BASELINES

    @property
    def id(self) -> str:
        return cell_id(self.definition())


def cells(experiment: Experiment) -> Iterator[Cell]:
    """All cells of an experiment, in the order of its definition."""
    for condition in experiment.conditions:
        for name, own in experiment.methods.items():
            yield Cell(condition=condition, kind="method", name=name, own=own)
        if experiment.attacks is not None:
            for name in experiment.attacks.names:
                yield Cell(condition=condition, kind="attack", name=name, own={}, attacks=experiment.attacks)


def _defence(condition: Condition) -> dict[str, str]:
    """Return the entries that a defence adds to the definition of a trial: none without one."""
    if condition.defence == "none":
        return {}
    return {"defence": condition.defence}


def _split(condition: Condition) -> dict[str, Any]:
    """Return the entries that another split than the default adds to the definition of a trial."""
    # No entry for the default: a hash must not change because an option was added.
    if condition.split == "iid":
        return {}
    skew = {"concentration": condition.concentration} if condition.split == "label-skew" else {}
    return {"split": condition.split, **skew}


def condition_of_draw(condition: Condition) -> Condition:
    """Return the condition without settings that do not change a trial."""
    drawn = replace(condition, hyperparameters="recommended")
    # Settings that the obfuscator or the split does not look at are brought to one value.
    if condition.obfuscator != "umap":
        drawn = replace(drawn, out_of_sample="row-wise")
    if condition.obfuscator != "kernel-pca":
        drawn = replace(drawn, kernel_width="median-squared")
    if condition.split != "label-skew":
        drawn = replace(drawn, concentration=1.0)
    return drawn
