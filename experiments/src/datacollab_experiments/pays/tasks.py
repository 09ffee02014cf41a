"""Parts of trials as tasks of the harness."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..harness import Outcome, Scored, Task, attempt
from .candidates import measure_candidates
from .settings import Preset, Setting
from .trial import measure, measure_sums

__all__ = ["MEASURES", "PartTask", "tasks_of"]

Measure = Callable[..., tuple[Mapping[str, float], Mapping[str, float]]]

MEASURES: dict[str, Measure] = {
    "main": measure,
    "sums": measure_sums,
    "candidates": measure_candidates,
}
"""Scores and seconds of each part of a trial, from a setting, a seed and ``data_dir``."""


@dataclass(frozen=True, kw_only=True)
class PartTask(Task):
    """One part of one trial.

    Attributes
    ----------
    part : {"main", "sums", "candidates"}
    setting : Setting
    seed : int
    cells : mapping of str to Setting
        The setting, by the hash of setting and part.
    data_dir : Path or None
        Directory that holds the data sets that are downloaded.
    """

    part: str
    setting: Setting
    data_dir: Path | None = None

    @property
    def label(self) -> str:
        """In words."""
        return f"{self.part}: {self.setting.label}, seed {self.seed}"

    def measure(self) -> Iterator[Outcome]:
        """Score the part."""
        for cell in self.cells:
            yield attempt(cell, partial(_scored, self))


def _scored(task: PartTask) -> Scored:
    scores, seconds = MEASURES[task.part](task.setting, task.seed, data_dir=task.data_dir)
    return scores, seconds, None


def tasks_of(
    preset: Preset,
    parts: Sequence[str],
    wanted: Callable[[str, Setting, int], bool],
    data_dir: Path | None = None,
) -> list[PartTask]:
    """All tasks, one seed after the other: a run that is stopped early has something of every setting."""
    return [
        PartTask(part=part, setting=setting, seed=seed, cells={setting.cell(part): setting}, data_dir=data_dir)
        for seed in preset.seeds
        for part in parts
        for setting in preset.settings
        if wanted(part, setting, seed)
    ]
