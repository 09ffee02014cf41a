"""What a terminal and a notebook show of a party, who may be asked for either by somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._notebooks import card, chain, class_names, table
from .._validation import PartyName
from ._basis import Basis
from ._defence import Defence

__all__ = ["ShownParty"]


class ShownParty:
    """Mixin of `Party`: its name, how many rows it has, and what kind of map and defences."""

    name: PartyName
    obfuscator: Any
    fit_on: Any
    defences: Sequence[Defence]
    _basis: Basis
    _forgotten: bool

    @property
    def _state(self) -> str:
        if self._forgotten:
            return "forgotten"
        return f"{self._basis.n_rows} rows" if hasattr(self, "_obfuscator") else "not fitted"

    def __repr__(self) -> str:
        return f"Party({self.name!r}, {self._state})"

    def _repr_html_(self) -> str:
        learnt = "this party's own rows, which it betrays" if self.fit_on is None else "a secret half of public rows"
        defences = ", ".join(map(class_names, self.defences)) or "none: each row leaves as its map has it"
        return card(
            f"Party {self.name}",
            chain(
                held=["rows", "f"],
                rows=self._state,
                f=f"{class_names(self.obfuscator)}, secret",
                shared="leaves once",
                g="of the analyst",
                h="of the analyst",
            ),
            table(
                [
                    ("map learnt from", learnt),
                    ("defences", defences),
                    ("stays here", "rows and map: nobody else can predict with what comes back"),
                ]
            ),
        )
