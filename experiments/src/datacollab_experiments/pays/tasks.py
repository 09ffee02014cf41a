"""Parts of trials as tasks of the harness."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..harness import Outcome, Scored, Task, attempt
from .settings import Preset, Setting
from .trial import measure, measure_sums

Measure = Callable[..., tuple[Mapping[str, float], Mapping[str, float]]]

# Scores and seconds of each part of a trial, from a setting, a seed and ``data_dir``.
MEASURES: dict[str, Measure] = {"main": measure, "sums": measure_sums}
PARTS = tuple(MEASURES)


@dataclass(frozen=True, kw_only=True)
class PartTask(Task):
    """One part of one trial."""

    part: str
    setting: Setting
    data_dir: Path | None = None

    @property
    def label(self) -> str:
        return f"{self.part}: {self.setting.label}, seed {self.seed}"

    def measure(self) -> Iterator[Outcome]:
        """Score the part."""
        for cell in self.cells:
            yield attempt(cell, partial(_score, self))


def _score(task: PartTask) -> Scored:
    scores, seconds = MEASURES[task.part](task.setting, task.seed, data_dir=task.data_dir)
    return scores, seconds, None


def tasks_of(preset: Preset, parts: Sequence[str] = PARTS, data_dir: Path | None = None) -> list[PartTask]:
    """Return all tasks, one seed after the other: a run that is stopped early has something of every setting."""
    return [
        PartTask(part=part, setting=setting, seed=seed, cells={setting.cell(part): setting}, data_dir=data_dir)
        for seed in preset.seeds
        for part in parts
        for setting in preset.settings
        # Sums are of their own settings, as rows are not shared there.
        if part != "sums" or setting.defence == "sums"
    ]
