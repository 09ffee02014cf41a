"""From definitions to cells: equal computations are one."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..harness import cell_id
from ._condition import Condition
from ._definition import AUDIT, Attacks, Experiment
from ._methods import BASELINES, specification

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
        """Hash of the definition."""
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
