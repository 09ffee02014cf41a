"""FedDCL: data collaboration within groups, federated averaging between their analysts.

Four groups of three parties with 40 images each share once with their group's analyst (PCA with 24 columns, affine
LTI), and the four analysts average a logistic model. "FL" is the same averaging between all twelve parties on their
pixels. Our groups agree on one target exactly, through the centre; the paper's do so approximately.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..downstream.groups import SETTINGS, accuracies, federated_averaging, world
from .claims import Figure, Row, at_least

__all__ = ["ROWS", "measured"]

_NAMES = {"DC groups, averaging": "FedDCL", "DC flat": "DC, one analyst", "Local": "Local", "Central": "Central"}
PAPER = (
    "A. Imakura and T. Sakurai (2024). FedDCL: a federated data collaboration learning as a hybrid-type "
    "privacy-preserving framework based on federated learning and data collaboration. arXiv:2409.18356."
)
TABLE = "digits 4x3x40"
_PRINTED = '"comparable to that of existing federated learning" (abstract)'
ROWS = (Row(PAPER, "FedDCL", TABLE, "accuracy", _PRINTED, (at_least(-0.02, "FL"), at_least(0.0, "Local"))),)


def measured(seed: int, *, small: bool) -> Iterator[Figure]:
    """Return the figures of one draw."""
    n_columns, integrator = SETTINGS["PCA 24, LTI 24"]
    drawn = world(seed, n_columns)
    found = accuracies(drawn, integrator)
    for ours, name in _NAMES.items():
        yield TABLE, name, "accuracy", found[ours]
    yield TABLE, "FL", "accuracy", float(federated_averaging(list(drawn.own.values())).score(*drawn.test))
