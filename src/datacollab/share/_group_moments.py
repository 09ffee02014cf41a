"""What a group sends for a linear model that is trained on sums: second moments of rows on a common target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._typing import FloatArray
from ..bundle import Bundle, SignedFile
from ..errors import ExchangeError, ShareError
from ._group_file import arrays_of, contents_of, frozen, malformed, too_large
from ._group_settings import MOST_ROWS, is_name
from ._targets import check_target_facts, decode_target, encode_targets

__all__ = ["MOMENTS_KIND", "GroupMoments", "group_moments_contents", "group_moments_from"]

MOMENTS_KIND = "datacollab.group-moments"

_FACTS = ("group", "space", "classes")
_MOST_CLASSES = 10_000
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GroupMoments(SignedFile):
    r"""Second moments of one group's collaboration representations and targets.

    With :math:`\hat X` the group's rows and T their one-hot classes, or the columns 1 and y of a numeric target, they
    are :math:`[T, \hat X]^\top [T, \hat X]`: counts and sums of each class, and :math:`\hat X^\top \hat X`.

    Attributes
    ----------
    group : str
    space : str
        `GroupTarget.digest` of the target that the rows are mapped onto.
    classes : ndarray of shape (n_classes,) or None
        Sorted; None of a numeric target.
    gram : ndarray of shape (m + n_components, m + n_components)
        m is the number of classes, or 2 of a numeric target.

    Raises
    ------
    ShareError
        When the fields do not fit together, or no table has such moments.
    """

    kind = MOMENTS_KIND

    group: str
    space: str
    classes: NDArray[Any] | None
    gram: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        if not is_name(self.group) or not isinstance(self.space, str) or len(self.space) != 64:
            raise ShareError("moments must name their group, and the digest of their target")
        if self.classes is not None:
            classes = np.asarray(self.classes)
            if classes.ndim != 1 or not 2 <= len(classes) <= _MOST_CLASSES:
                raise ShareError("moments of classes are of two classes or more")
            if classes.dtype.kind == "f" or not np.array_equal(np.unique(classes), classes):
                raise ShareError("moments must name their classes in order, each once, and none by a fraction")
            object.__setattr__(self, "classes", classes.copy())
        self._check_gram(np.asarray(self.gram))
        object.__setattr__(self, "gram", frozen(np.asarray(self.gram)))

    @property
    def n_outputs(self) -> int:
        """Columns of T."""
        return 2 if self.classes is None else len(self.classes)

    @property
    def n_rows(self) -> int:
        """Rows that are in the sums."""
        return int(self.gram[0, 0] if self.classes is None else round(np.trace(self.gram[: self.n_outputs])))

    def _check_gram(self, S: FloatArray) -> None:
        m = self.n_outputs
        if S.ndim != 2 or S.shape[0] != S.shape[1] or S.shape[0] <= m or S.dtype != np.float64:
            raise ShareError("moments must be a square table of double precision, with a column for each component")
        if not np.isfinite(S).all() or np.abs(S).max() > 1e100 or not np.array_equal(S, S.T):
            raise ShareError("moments must be finite and symmetric")
        counts = S[:1, :1] if self.classes is None else S[:m, :m]
        if not np.array_equal(counts, np.diag(np.round(counts.diagonal()))):
            raise ShareError("moments must count whole rows, each in one class")
        if counts.diagonal().min() < 1 or counts.diagonal().sum() > MOST_ROWS:
            raise ShareError("moments count at least one row in each class")
        roots = np.sqrt(np.maximum(S.diagonal(), np.finfo(float).tiny))
        if scipy.linalg.eigvalsh(S / roots / roots[:, None], check_finite=False)[0] < -_ROUNDING * len(S):
            raise ShareError("no table has such moments")

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return group_moments_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> GroupMoments:
        return group_moments_from(bundle)

    def __repr__(self) -> str:
        kind = "numbers" if self.classes is None else f"{len(self.classes)} classes"
        return f"GroupMoments(group={self.group!r}, {kind}, gram={self.gram.shape})"


def group_moments_contents(moments: GroupMoments) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of the bundle of moments.

    Raises
    ------
    ExchangeError
        GROUP_MALFORMED, for classes that are neither texts nor numbers.
    """
    facts: dict[str, Any] = {"group": moments.group, "space": moments.space, "classes": None}
    arrays: dict[str, NDArray[Any]] = {"gram": moments.gram}
    if moments.classes is not None:
        try:
            facts["classes"], targets = encode_targets(moments.group, moments.classes, None)
        except ExchangeError as error:
            raise ExchangeError("GROUP_MALFORMED", str(error)) from None
        arrays["classes"] = targets["target"]
    return contents_of(facts, arrays)


def group_moments_from(bundle: Bundle) -> GroupMoments:
    """The moments in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, or GROUP_MALFORMED where the parts do not fit together.
    """
    try:
        arrays = arrays_of(bundle, MOMENTS_KIND, _FACTS, [("gram",), ("gram", "classes")])
        classes = None
        if ("classes" in arrays) != (bundle.facts["classes"] is not None):
            raise malformed("its manifest says something else than its arrays of its classes")
        if "classes" in arrays:
            try:
                classes = decode_target(arrays["classes"], *check_target_facts(bundle.facts["classes"]))
            except ExchangeError:
                raise malformed("its classes are of no known type") from None
        return GroupMoments(
            group=bundle.facts["group"], space=bundle.facts["space"], classes=classes, gram=arrays["gram"]
        )
    except ShareError as error:
        raise malformed(str(error)) from None
    except MemoryError:
        raise too_large() from None
