"""The model that goes back to parties that shared sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from .._version import __version__
from ..bundle import Bundle, SignedFile, arrays_to_bytes, bytes_to_arrays
from ..errors import AgreementError, ExchangeError
from ._class_link import ClassLink
from ._ridge_sums import LEAST_KEPT, RidgeFromSums, RidgeSums

SUMS_MODEL_KIND = "datacollab.sums-model"

_ARRAYS = "model.safetensors"
_FACTS = {"classes", "limits", "context", "alpha", "n_rows", "scale", "residual", "versions"}


@dataclass(frozen=True, eq=False, repr=False)
class SumsModel(SignedFile):
    """The common model: the same for all parties, and of use only to those who know the common map.

    Attributes
    ----------
    fit : RidgeFromSums
    classes : tuple or None
    limits : (float, float) or None
        Range of a numeric target.
    context : bytes of length 32
        Digest of the sum that it was made from; parties compare it.
    scale : str or None
        See `RidgeSums`.
    """

    kind = SUMS_MODEL_KIND

    fit: RidgeFromSums
    classes: tuple[Any, ...] | None
    limits: tuple[float, float] | None
    context: bytes
    scale: str | None = None

    @cached_property
    def statistic(self) -> RidgeSums:
        """Return the encoding of targets."""
        return RidgeSums(len(self.fit.coefficients), classes=self.classes, limits=self.limits, scale=self.scale)

    def predict(self, v: FloatArray) -> NDArray[Any]:
        """Return classes or numbers, shape (n_rows,), of rows in the common map, shape (n_rows, n_components).

        It raises AgreementError if the rows have another number of columns, as raw rows have.
        """
        if self.classes is not None:
            return np.asarray(np.asarray(self.classes)[self.predict_proba(v).argmax(axis=1)])
        return self.statistic.decode(self._outputs(v), self.fit.residual)

    def predict_proba(self, v: FloatArray) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes), as the link of `fit` makes them of outputs plus 1/C.

        It raises AgreementError if the model is one of numbers, or as `predict` does.
        """
        if self.fit.link is None:
            raise AgreementError("SumsModel: a model of numbers has no probabilities. Use predict.")
        return self.fit.link.probabilities(self._outputs(v) + 1 / self.statistic.n_outputs)

    @property
    def constant_classes(self) -> tuple[Any, ...]:
        """Return the classes that differ little from their shares of rows; none in a model that was read."""
        kept = zip(self.classes or (), self.fit.reliability, strict=False)
        return tuple(name for name, part in kept if part <= LEAST_KEPT)

    def _outputs(self, v: FloatArray) -> FloatArray:
        n = len(self.fit.coefficients)
        if np.ndim(v) != 2 or np.shape(v)[1] != n:
            raise AgreementError(
                f"SumsModel: expected rows of the common map, shape (n_rows, {n}); got shape {np.shape(v)}. Bring raw "
                "rows there first, with CommonSpace.transform."
            )
        return self.fit.predict(v)

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        facts = {
            "classes": self.classes and list(self.classes),
            "limits": self.limits and list(self.limits),
            "context": self.context.hex(),
            "alpha": self.fit.alpha,
            "n_rows": self.fit.n_rows,
            "scale": self.scale,
            "residual": self.fit.residual,
            "versions": {"datacollab": __version__, "numpy": np.__version__},
        }
        arrays = {"coefficients": self.fit.coefficients, "intercept": self.fit.intercept}
        if self.fit.link is not None:
            arrays |= vars(self.fit.link)
        return facts, {_ARRAYS: arrays_to_bytes(arrays)}

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> SumsModel:
        facts = bundle.facts
        if facts.keys() != _FACTS or bundle.members.keys() != {_ARRAYS}:
            raise _refusal("it has other facts or parts than a model of sums")
        arrays = bytes_to_arrays(bundle.members[_ARRAYS], what="The model")
        try:
            W = arrays.pop("coefficients")
            b = arrays.pop("intercept")
            alpha, n_rows, residual = (float(facts[name]) for name in ("alpha", "n_rows", "residual"))
            fit = RidgeFromSums(W, b, alpha, n_rows, residual=residual)
            classes = limits = None
            if facts["limits"] is not None:
                low, high = facts["limits"]
                limits = (float(low), float(high))
            if facts["classes"] is not None:
                classes = tuple(facts["classes"])
                fit = replace(fit, link=ClassLink(arrays.pop("softness"), arrays.pop("weights")))
            model = cls(fit, classes, limits, bytes.fromhex(facts["context"]), facts["scale"])
            n_outputs = model.statistic.n_outputs
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            raise _refusal("its parts are not what they have to be") from None
        if W.shape != (len(W), n_outputs) or b.shape != (n_outputs,) or arrays or len(model.context) != 32:
            raise _refusal("its arrays do not fit together")
        if W.dtype != np.float64 or b.dtype != np.float64 or not (np.isfinite(W).all() and np.isfinite(b).all()):
            raise _refusal("its arrays are no finite numbers of double precision")
        if not 0 <= fit.residual <= 1:
            raise _refusal("its residual is no deviation of numbers between -1 and 1")
        for each in vars(fit.link).values() if fit.link is not None else ():
            if each.shape != b.shape or each.dtype != np.float64 or not ((each > 0) & np.isfinite(each)).all():
                raise _refusal("softness and weights are not one positive number for each class")
        return model

    def __repr__(self) -> str:
        return f"SumsModel(n_components={len(self.fit.coefficients)}, n_rows={self.fit.n_rows:.0f})"


def _refusal(reason: str) -> ExchangeError:
    return ExchangeError("MODEL_MALFORMED", f"The model cannot be used: {reason}. Have the analyst send it again.")
