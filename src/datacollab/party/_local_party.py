"""A party that predicts at home, long after the process that shared has ended."""

from __future__ import annotations

from typing import Any

from .._validation import FloatArray, PartyName
from ._batches import TableForm
from ._inference import LocalInference

__all__ = ["LocalParty"]


class LocalParty(LocalInference):
    """What is left of a `Party` on its disk: the fitted f_k, without rows, defences or anything to share.

    Parameters
    ----------
    name : str or int
    obfuscator : transformer
        Fitted.
    rotation : ndarray of shape (n_intermediate, n_intermediate) or None
        What follows the obfuscator where it was fitted on public rows.
    form : TableForm
        How the table was laid out that the party was fitted on.

    Notes
    -----
    Leaves the party: nothing.  The obfuscator may hold the raw table (kernel PCA and UMAP do).
    """

    def __init__(self, name: PartyName, obfuscator: Any, *, rotation: FloatArray | None, form: TableForm) -> None:
        self.name = name
        self.obfuscator = obfuscator
        self._obfuscator = obfuscator
        self._rotation = rotation
        self._form = form

    def __repr__(self) -> str:
        return f"LocalParty({self.name!r})"
