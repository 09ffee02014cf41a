"""How a party's rows leave: the obfuscators by name, and the options of a command, completed and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from .._by_name import OBFUSCATORS as ENTRIES
from .._typing import USUAL
from .._validation import PartyName
from ..targets import TargetKind
from ._defence import AUTO_BINS, Defence, GaussianMechanism, GaussianNoise, Microaggregation
from ._party import Party

OBFUSCATORS = tuple(ENTRIES)


def obfuscator(
    kind: str,
    n_components: int = USUAL,
    *,
    random_state: int | np.random.RandomState | None = None,
    standardize: bool | None = None,
    **options: Any,
) -> BaseEstimator:
    """Make an obfuscator f_k: a scikit-learn transformer that maps each row by itself.

    Parameters
    ----------
    kind : {"pca", "kernel-pca", "umap", "random-projection"}
        `sklearn.decomposition.PCA`, `KernelPCAObfuscator`, `UMAPObfuscator` (row-wise on new rows), or
        `sklearn.random_projection.GaussianRandomProjection`.
    n_components : int, default=10
        Columns of the intermediate representation.  `DataCollaborationClassifier` lowers the default, and it alone, for
        narrow tables; a `Party` does not, for a linear map onto all columns hides nothing.
    random_state : int, RandomState or None, default=None
        Passed on.  None is the choice outside experiments: anyone who knows the number can rebuild the obfuscation.
    standardize : bool or None, default=None
        Whether the party's columns are first brought to mean 0 and variance 1.  None means yes for "kernel-pca" and
        "umap", no for "pca" and "random-projection", which suits images but not a table whose columns have units.
    **options
        Further parameters of the transformer, such as ``out_of_sample="umap"`` for "umap", or ``whiten=True`` for
        "pca".

    Returns
    -------
    transformer
        Not fitted.  If standardised, a `Pipeline` with the steps "standardize" and "reduce".

    Raises
    ------
    ValueError, TypeError
        If `kind` is unknown, or the transformer takes no such option.

    Notes
    -----
    With ``random_state=None`` a `Party` draws every secret from the operating system; fitted without a `Party`,
    "random-projection" draws from NumPy's global generator.
    """
    if kind not in OBFUSCATORS:
        raise ValueError(
            f"Unknown obfuscator {kind!r}; choose one of {sorted(OBFUSCATORS)}, or any transformer instead."
        )
    entry = ENTRIES[kind]
    transformer = entry.load()
    allowed = sorted({*transformer().get_params(), "standardize"})
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise TypeError(f"The obfuscator {kind!r} takes no option {unknown}; it takes {allowed}.")
    reducer = transformer(n_components=n_components, random_state=random_state, **options)
    if standardize is None:
        standardize = entry.standardize
    if not standardize:
        return reducer
    return Pipeline([("standardize", StandardScaler()), ("reduce", reducer)])


GROUPS = "groups"
UNDEFENDED = "none"
PRESETS = (GROUPS, UNDEFENDED)
# Usual number of columns.
_COMPONENTS = 16
# Rows of a group, and noise in standard deviations, of the preset "groups".
_GROUP = 5
_NOISE = 0.3
_WITH_TREATMENT = (TargetKind.EFFECT, TargetKind.SURVIVAL_EFFECT)


def _check_defences(preset: str | None, named: list[str], epsilon: float | None, target_kind: TargetKind) -> None:
    """Raise ValueError if options of defences are unknown, or exclude one another."""
    if preset not in (None, *PRESETS):
        raise ValueError(f"Unknown preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    if preset is not None and named:
        raise ValueError(f"The preset {preset!r} says which defence is taken; leave it out, or the {named[0]}.")
    if epsilon is None:
        return
    others = ["preset"] if preset is not None else named
    if others:
        raise ValueError(
            f"An epsilon is a defence of its own, with noise on every row; leave it out, or the {others[0]}."
        )
    if target_kind is not TargetKind.SINGLE:
        raise ValueError(
            f"An epsilon is for classes and numbers, not for targets of kind {target_kind.value!r}. Take the preset "
            f"{GROUPS!r}, or name a group size."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SharingPlan:
    """One way to share rows: by which map, and behind which defences.

    Attributes
    ----------
    obfuscator, n_components, standardize
        As for `datacollab.obfuscator`.
    defences : tuple of Defence
        In the order in which they are applied.
    fit_on_anchor : bool
        Whether f_k is fitted on a secret half of the anchor rather than on the party's rows.
    time_step : float or None
        Times are rounded up to its multiples; None if they are not, or there are none.
    """

    obfuscator: str
    n_components: int
    standardize: bool
    defences: tuple[Defence, ...] = ()
    fit_on_anchor: bool = False
    time_step: float | None = None

    @classmethod
    def of(  # noqa: PLR0913
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
    ) -> Self:
        """Complete the options of a command; raise ValueError if options are unknown, or exclude one another.

        Parameters
        ----------
        obfuscator, n_components, standardize
            By default "pca", 16 or `largest` if that is less, and as for `datacollab.obfuscator`.
        preset : {"groups", "none"}, optional
            "groups", the default if no defence is named, is means of five rows and noise of .3 standard deviations,
            of a map fitted on the anchor.  "none" is no defence, and has to be named.
        epsilon : float, optional
            Of `datacollab.party.GaussianMechanism`, on a map fitted on the anchor.  It excludes other defences, and is
            for classes and numbers alone.
        group_size, noise, fit_on_anchor, time_step
            Other defences, and attributes of `SharingPlan`.
        is_regression : bool, default=False
            Whether targets are numbers; whole ones are numbers, too.
        target_kind : TargetKind, default=TargetKind.SINGLE
            The default for effects is means of five rows alone: estimates from rows with noise are biased, and the
            analyst's program refuses them.
        largest : int
            Columns that the table and all limits permit.
        """
        named = [name for name, value in (("group size", group_size), ("noise", noise)) if value is not None]
        _check_defences(preset, named, epsilon, target_kind)
        if epsilon is not None:
            # A map that was fitted on private rows would betray them under any noise.
            fit_on_anchor = True
        elif preset == GROUPS or (preset is None and not named):
            group_size = _GROUP
            fit_on_anchor = True
            # Estimates of effects from rows with noise are biased, so noise has to be asked for there.
            if preset == GROUPS or target_kind not in _WITH_TREATMENT:
                noise = _NOISE
        kind = obfuscator or OBFUSCATORS[0]
        if kind not in OBFUSCATORS:
            raise ValueError(f"Unknown obfuscator {kind!r}; choose one of {', '.join(OBFUSCATORS)}.")
        if n_components is not None and n_components < 1:
            raise ValueError(f"The representation needs a column at least; got {n_components} components.")
        defences: list[Defence] = []
        if epsilon is not None:
            defences.append(GaussianMechanism(epsilon))
        if group_size is not None:
            defences.append(Microaggregation(group_size, n_bins=AUTO_BINS if is_regression else None))
        # Noise comes last: means of rows with noise would have less of it.
        if noise is not None:
            defences.append(GaussianNoise(noise))
        if n_components is None:
            n_components = min(_COMPONENTS, largest)
        if standardize is None:
            standardize = ENTRIES[kind].standardize
        return cls(
            obfuscator=kind,
            n_components=n_components,
            standardize=standardize,
            defences=tuple(defences),
            fit_on_anchor=fit_on_anchor,
            time_step=time_step,
        )

    @property
    def has_promise(self) -> bool:
        """Whether a defence can promise differential privacy."""
        return any(defence.has_promise for defence in self.defences)

    @property
    def kinds_of_defence(self) -> tuple[str, ...]:
        """Names of the defences in a party's policy."""
        return tuple(dict.fromkeys(defence.kind for defence in self.defences))

    def party(self, name: PartyName, public: Any, *, shuffle: bool = True) -> Party:
        """Return an unfitted party that shares in this way; its secrets come from the operating system."""
        return Party(
            name,
            obfuscator(self.obfuscator, self.n_components, standardize=self.standardize),
            fit_on=public if self.fit_on_anchor else None,
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
        # An epsilon fits the map on the anchor without being asked.
        promised = [defence.options for defence in self.defences if defence.has_promise]
        if self.fit_on_anchor and not promised:
            parts.append("--fit-on-anchor")
        return " ".join([*parts, *(defence.options for defence in self.defences)])
