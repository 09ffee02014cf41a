"""How a party obfuscates: the options of a command, completed and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...party import OBFUSCATORS, Defence, GaussianMechanism, GaussianNoise, Microaggregation, Party
from ...party import obfuscator as make_obfuscator
from ...party._microaggregation import AUTO_BINS
from ...party._obfuscator import STANDARDIZED
from ...targets import TargetKind
from ..project import Anchor, Task

__all__ = ["PRESETS", "UNDEFENDED", "Way", "of_task"]

GROUPS, UNDEFENDED = PRESETS = ("groups", "none")
USUAL_COMPONENTS = 16
USUAL_GROUP, USUAL_NOISE = 5, 0.3
"""Of the preset "groups": rows of a group at least, and noise in standard deviations."""
WITH_TREATMENT = (TargetKind.EFFECT, TargetKind.SURVIVAL_EFFECT)


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way of obfuscating.

    Attributes
    ----------
    obfuscator : str
        As for `datacollab.obfuscator`.
    n_components : int
    standardize : bool
    epsilon : float or None
        Of the Gaussian mechanism, by which each row leaves.
    group_size : int or None
        Rows that share a published row, at least.
    noise : float or None
        Standard deviation of noise in units of each column's own.
    fit_on_anchor : bool
        Whether f_k is fitted on a secret half of the anchor rather than on the party's rows.
    n_bins : int or None
        Into how many intervals a numeric target is divided for groups; None where there are classes.
    time_step : float or None
        To multiples of what times are rounded up; None where they are not, or there are none.
    """

    obfuscator: str
    n_components: int
    standardize: bool
    epsilon: float | None = None
    group_size: int | None = None
    noise: float | None = None
    fit_on_anchor: bool = False
    n_bins: int | None = None
    time_step: float | None = None

    @classmethod
    def of(
        cls,
        *,
        obfuscator: str | None = None,
        n_components: int | None = None,
        preset: str | None = None,
        standardize: bool | None = None,
        epsilon: float | None = None,
        group_size: int | None = None,
        noise: float | None = None,
        fit_on_anchor: bool = False,
        is_regression: bool = False,
        target_kind: TargetKind = TargetKind.SINGLE,
        time_step: float | None = None,
        largest: int,
    ) -> Way:
        """Complete what was asked for.

        Parameters
        ----------
        obfuscator : str, optional
            By default "pca".
        n_components : int, optional
            By default 16, or `largest` where that is less.
        preset : {"groups", "none"}, optional
            "groups", which is taken where no defence is named: means of five rows and noise of .3 standard deviations,
            of a map fitted on the anchor.  "none" is no defence, and has to be named.
        standardize : bool, optional
            By default as for `datacollab.obfuscator`.
        epsilon : float, optional
            Of `datacollab.party.GaussianMechanism`, on a map fitted on the anchor; with no other defence, and for
            classes and numbers alone.
        group_size : int, optional
        noise : float, optional
        fit_on_anchor : bool, default=False
        is_regression : bool, default=False
            Whether targets are numbers; whole ones are numbers, too.
        target_kind : TargetKind, default=TargetKind.SINGLE
            Of the targets.  For effects, means of groups of five alone are taken where no defence is named, as
            estimates from rows with noise are biased, and the analyst's program refuses them.
        time_step : float, optional
            As for `datacollab.Party`.
        largest : int
            Columns that the table and all limits permit.

        Raises
        ------
        ValueError
            When options are unknown, or exclude one another.
        """
        if preset not in (None, *PRESETS):
            raise ValueError(f"Unknown preset {preset!r}; choose one of {', '.join(PRESETS)}.")
        named = [name for name, value in (("group size", group_size), ("noise", noise)) if value is not None]
        if preset is not None and named:
            raise ValueError(f"The preset {preset!r} says which defence is taken; leave it out, or the {named[0]}.")
        if epsilon is not None:
            if preset is not None or named:
                raise ValueError(
                    "An epsilon is a defence of its own, with noise on every row; leave it out, or the "
                    f"{'preset' if preset is not None else named[0]}."
                )
            if target_kind is not TargetKind.SINGLE:
                raise ValueError(
                    f"An epsilon is for classes and numbers, not for targets of kind {target_kind.value!r}. Take the "
                    f"preset {GROUPS!r}, or name a group size."
                )
            fit_on_anchor = True
        elif preset == GROUPS or (preset is None and not named):
            is_without_noise = preset is None and target_kind in WITH_TREATMENT
            group_size, noise, fit_on_anchor = USUAL_GROUP, None if is_without_noise else USUAL_NOISE, True
        kind = obfuscator or "pca"
        if kind not in OBFUSCATORS:
            raise ValueError(f"Unknown obfuscator {kind!r}; choose one of {', '.join(OBFUSCATORS)}.")
        if n_components is not None and n_components < 1:
            raise ValueError(f"The representation needs a column at least; got {n_components} components.")
        return cls(
            obfuscator=kind,
            n_components=min(USUAL_COMPONENTS, largest) if n_components is None else n_components,
            standardize=kind in STANDARDIZED if standardize is None else standardize,
            epsilon=epsilon,
            group_size=group_size,
            noise=noise,
            fit_on_anchor=fit_on_anchor,
            n_bins=AUTO_BINS if is_regression else None,
            time_step=time_step,
        )

    @property
    def defences(self) -> tuple[Defence, ...]:
        """In the order in which they are applied."""
        mechanism = () if self.epsilon is None else (GaussianMechanism(self.epsilon),)
        groups = () if self.group_size is None else (Microaggregation(self.group_size, n_bins=self.n_bins),)
        noise = () if self.noise is None else (GaussianNoise(self.noise),)
        return (*mechanism, *groups, *noise)

    def party(self, name: str, anchor: Anchor, *, shuffle: bool = True) -> Party:
        """A party that shares in this way, not fitted; its secrets come from the operating system."""
        return Party(
            name,
            make_obfuscator(self.obfuscator, self.n_components, standardize=self.standardize),
            fit_on=anchor.rows if self.fit_on_anchor else None,
            defences=self.defences,
            shuffle=shuffle,
            time_step=self.time_step,
        )

    @property
    def options(self) -> str:
        """The options of `datacollab party share` that mean this."""
        parts = [f"--obfuscator {self.obfuscator}", f"--components {self.n_components}"]
        parts.append("--standardize" if self.standardize else "--no-standardize")
        if not self.defences:
            parts.append(f"--preset {UNDEFENDED}")
        if self.epsilon is not None:
            parts.append(f"--epsilon {self.epsilon:g}")
        if self.fit_on_anchor and self.epsilon is None:
            parts.append("--fit-on-anchor")
        if self.group_size is not None:
            parts.append(f"--group-size {self.group_size}")
        if self.noise is not None:
            parts.append(f"--noise {self.noise:g}")
        return " ".join(parts)


def of_task(task: Task) -> dict[str, Any]:
    """What a way has to know of the targets, as `Way.of` takes it."""
    return {"is_regression": task.kind == "regression", "target_kind": task.target_kind, "time_step": task.time_step}
