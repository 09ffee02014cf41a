"""All methods in one draw as a task of the harness, on tables and conditions fixed beforehand."""

import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from datacollab.errors import DataCollabWarning

from ..harness import Outcome, Scored, Task, attempt, cell_id
from ..pays.draws import Draw, draw, losses, score
from ..pays.settings import Setting, Split
from ..pays.tables import load_table
from .attacks import attack_method
from .methods import METHODS, Method

# To be raised whenever the same method and setting would give other scores.
PROTOCOL = 1

# No method was tuned on the tables but digits; in email one row in eleven is spam.
TABLES = ("credit", "email", "digits", "telco")

Condition = tuple[int, int, Split]
# Parties, rows of each, and how these differ.
CONDITIONS: tuple[Condition, ...] = (
    (10, 50, "iid"),
    (50, 20, "iid"),
    (3, 100, "iid"),
    (10, 50, "label-skew"),
    (10, 50, "feature-shift"),
)

# Two methods are level if their scores, or their areas under the curve, differ by no more.
UTILITY = 0.005
RISK = 0.02


@dataclass(frozen=True, kw_only=True)
class OneshotPreset:
    """Settings, seeds and how many worlds an attacker learns from and is judged in."""

    settings: tuple[Setting, ...]
    seeds: tuple[int, ...]
    n_worlds: int


def _settings() -> tuple[Setting, ...]:
    """Return each table under each condition, so that few settings already have some of everything."""
    n = len(CONDITIONS)
    every = [(table, CONDITIONS[(turn + place) % n]) for turn in range(n) for place, table in enumerate(TABLES)]
    return tuple(
        Setting(dataset=table, n_parties=n_parties, n_per_party=rows, split=split)
        for table, (n_parties, rows, split) in every
    )


PRESETS = {
    "smoke": OneshotPreset(
        settings=(Setting(dataset="breast-cancer", n_parties=3, n_per_party=20, n_public=40),), seeds=(0,), n_worlds=10
    ),
    "quick": OneshotPreset(settings=_settings(), seeds=(0, 1, 2), n_worlds=30),
}


@dataclass(frozen=True, kw_only=True)
class MethodsTask(Task):
    """All methods in one draw of one setting.

    Attributes
    ----------
    n_worlds : int
        Number of worlds that each attack draws.
    """

    cells: Mapping[str, str]
    setting: Setting
    n_worlds: int
    data_dir: Path | None = None

    @property
    def label(self) -> str:
        return f"{self.setting.label}, seed {self.seed}"

    def measure(self) -> Iterator[Outcome]:
        """Play and attack each method."""
        drawn = draw(load_table(self.setting.dataset, self.data_dir), self.setting, self.seed)
        for cell, name in self.cells.items():
            yield attempt(cell, partial(_score, METHODS[name], drawn, self.n_worlds))


def _score(method: Method, drawn: Draw, n_worlds: int) -> Scored:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataCollabWarning)  # seeds are fixed here, as they never should be
        scores, seconds = measure(method, drawn, n_worlds)
    return scores, seconds, None


def measure(method: Method, drawn: Draw, n_worlds: int) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return a method's scores on the test rows, the bytes sent, attackers' success, and CPU seconds."""
    started = time.process_time()
    # Once as people would play it, for its scores and its costs.
    played = method.play(drawn, attacked=False)
    seconds = {"play": time.process_time() - started}
    said = [predict(drawn.test.X) for predict in played.models]
    # The area under the curve is defined for two classes alone.
    metrics = ("accuracy", "AUC") if drawn.n_classes == 2 else ("accuracy",)
    scores = {name: float(np.mean([score(name, drawn.test.y, each) for each in said])) for name in metrics}
    scores["log loss"] = float(np.mean([losses(drawn.test.y, each).mean() for each in said]))
    scores |= {"bytes": float(played.sent), "rounds": float(played.rounds)}
    started = time.process_time()
    scores |= attack_method(method, drawn, n_worlds)
    return scores, seconds | {"attack": time.process_time() - started}


def tasks_of(preset: OneshotPreset, methods: Collection[str] = (), data_dir: Path | None = None) -> list[MethodsTask]:
    """Return all tasks, one seed after the other: a run that is stopped early has something of every setting."""
    return [
        MethodsTask(
            seed=seed,
            cells={_cell(name, setting, preset.n_worlds): name for name in methods or METHODS},
            setting=setting,
            n_worlds=preset.n_worlds,
            data_dir=data_dir,
        )
        for seed in preset.seeds
        for setting in preset.settings
    ]


def _cell(name: str, setting: Setting, n_worlds: int) -> str:
    return cell_id({"protocol": PROTOCOL, "method": name, "worlds": n_worlds, **asdict(setting)})
