"""A party's own model beside the common one of sums: made when it shares, kept in its folder, and never sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...agreement import Project, are_declared_alike
from ...bundle import arrays_to_bytes, bytes_to_arrays
from ...folder.party import Folder
from ...sums import RidgeSums

if TYPE_CHECKING:
    from ...own import OwnModel

_MEMBER = "own.safetensors"
_AGAIN = "Run `datacollab party share` with the table once more: it makes one, and sends nothing new."


class OwnSample:
    """Rows of the matrix and their targets, at most as many as an own model learns from, taken by chance.

    A table of any length gives the same rows again, in batches of any length.
    """

    def __init__(self, seed: int = 0) -> None:
        # The same seed always: the rows stay here, and a second run over the table makes the same model.
        self._random = np.random.default_rng(seed)
        self._drawn = np.zeros(0)
        self.parts = list[tuple[FloatArray, NDArray[Any]]]()

    def add(self, X: FloatArray, target: NDArray[Any]) -> None:
        """Take a batch into account."""
        self._join(X, target, self._random.random(len(X)))

    def join(self, other: OwnSample) -> None:
        """Take the rows into account that another sample kept of its own ones."""
        for X, target in other.parts:
            self._join(X, target, other._drawn)

    def _join(self, X: FloatArray, target: NDArray[Any], drawn: FloatArray) -> None:
        # Own models bring scikit-learn, which takes a second to load: joining a project needs none.
        from ...own import MOST_OWN_ROWS

        drawn = np.append(self._drawn, drawn)
        # The rows with the smallest numbers so far: each row of the table is as likely to be kept as any other.
        kept = np.sort(np.argsort(drawn)[:MOST_OWN_ROWS])
        X, target = (np.concatenate(both)[kept] for both in zip(*self.parts, (X, target), strict=True))
        self._drawn = drawn[kept]
        self.parts = [(X, target)]


def own_model_state(
    project: Project, statistic: RidgeSums, parts: Sequence[tuple[FloatArray, NDArray[Any]]]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of the own model's file; without a model, the facts say why there is none."""
    # The next version of the project may have another matrix, in which these rows are read wrongly.
    facts = {"project_digest": project.digest}
    if are_declared_alike(project.columns):
        return facts | {"reason": "Columns are all alike, as pixels are: one would cost accuracy."}, {}
    from ...own import fit_own_model

    try:
        own = fit_own_model(statistic, *parts)
        if own is not None:
            arrays: dict[str, NDArray[Any]] = {"rows": own.rows, "targets": own.targets, "left_out": own.left_out}
            if own.columns is not None:
                arrays["columns"] = own.columns
            return facts | {"is_forest": own.is_forest, "n_own": own.n_own}, {_MEMBER: arrays_to_bytes(arrays)}
        reason = "All rows are of one class, or they are too few."
    # A share does not fail for what stays at home.
    except Exception as error:
        reason = f"It could not be made ({type(error).__name__}). {_AGAIN}"
    return facts | {"reason": reason}, {}


def read_own_model(folder: Folder) -> tuple[OwnModel | None, str]:
    """Return the own model of the project, and an empty text; or None, and why there is none."""
    file = folder.files.own
    missing = f"{file.name} is not there. {_AGAIN}"
    if not file.exists():
        return None, missing
    kept = folder.read(file)
    # That of an earlier version was fitted in another matrix.
    if kept.facts["project_digest"] != folder.project.digest:
        return None, missing
    if _MEMBER not in kept.members:
        return None, str(kept.facts["reason"])
    from ...own import OwnModel

    arrays = bytes_to_arrays(kept.members[_MEMBER], what="the own model")
    return OwnModel(kept.facts["is_forest"], arrays.pop("columns", None), kept.facts["n_own"], **arrays), ""
