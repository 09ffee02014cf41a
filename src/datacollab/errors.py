"""All errors and warnings, in one tree below `DataCollabError` and `DataCollabWarning`.

Each error is also a builtin one, so ``except ValueError`` keeps working.  A message names the party and the
parameter, and says the value expected, the one found and the way on.  It shows names, shapes and types; never an entry
of the data.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["AgreementError", "AnchorError", "ApproximationWarning", "ClusterError", "DataCollabError"]
__all__ += ["DataCollabWarning", "DatasetError", "EffectError", "EffectWarning", "ExchangeError", "ForgottenError"]
__all__ += ["IncompressibleKernelError", "MissingExtraError", "NoGuaranteeError", "NotConvergedError"]
__all__ += ["NotEnoughMemoryError", "NumericalError", "ObfuscationError", "PrivateRowsWarning"]
__all__ += ["RepeatableSecretWarning", "RepresentationError", "ShareError", "SharedBeforeError", "SinglePartyWarning"]
__all__ += ["SuppressedRowsWarning", "UndeterminedTargetWarning", "UnknownPartyError"]


class DataCollabError(Exception):
    """Base of all errors that the library raises on purpose."""


class AgreementError(DataCollabError, ValueError):
    """The parties do not agree on anchors, targets, names or dimensions."""


class RepresentationError(DataCollabError, ValueError):
    """An intermediate representation cannot be used; the message names the party."""


class ShareError(DataCollabError, ValueError):
    """A share is malformed."""


class AnchorError(DataCollabError, ValueError):
    """An anchor cannot be made from the given sources, or does not fit the data."""


class UnknownPartyError(DataCollabError, ValueError):
    """A party is named that took no part in the integration."""


class ObfuscationError(DataCollabError, ValueError):
    """A party's obfuscator failed, so nothing leaves the party.

    Attributes
    ----------
    original : Exception or None
        The obfuscator's own error.  It is kept here rather than shown because its text may quote private values.
    """

    def __init__(self, message: str, original: Exception | None = None) -> None:
        super().__init__(message)
        self.original = original


class NumericalError(DataCollabError, ArithmeticError):
    """A factorisation broke down; the message says which parameter to change."""


class IncompressibleKernelError(NumericalError):
    """No few landmarks can stand for the other anchor rows; the message names the parameter to change."""


class NotConvergedError(NumericalError):
    """An iterative solver did not reach its accuracy, so there is no result; the message names the way on."""


class NotEnoughMemoryError(DataCollabError, MemoryError):
    """A fit would take more memory than there is; the message says how much, and nothing was started."""


class ClusterError(DataCollabError, RuntimeError):
    """A Dask cluster cannot be used, or loses workers too fast to be replaced; the message names the way on."""


class EffectError(DataCollabError, ValueError):
    """An effect cannot be estimated from the shares, or not with intervals that hold; the message says why."""


class NoGuaranteeError(DataCollabError, RuntimeError):
    """No epsilon can be stated for what a party shares; the message names the condition that does not hold."""


class SharedBeforeError(DataCollabError, RuntimeError):
    """A party would share rows anew, after another fit; nothing left the party."""


class ForgottenError(DataCollabError, RuntimeError):
    """A party has forgotten its map f_k, and a step needs it."""


class ExchangeError(DataCollabError, ValueError):
    """A file or a step of the exchange is refused; nothing was changed.

    Attributes
    ----------
    code : str
        One of the documented reasons.
    exit_code : int
        The exit code of a command.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        # Looked up at once, so that a code that nobody documented fails here and not at the user's.
        self.exit_code = all_codes()[code].exit_code
        self.code = code


class DatasetError(DataCollabError, OSError):
    """A data set is missing, damaged or another than was expected."""


class MissingExtraError(DataCollabError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class DataCollabWarning(UserWarning):
    """Base of the library's own warnings."""


class SinglePartyWarning(DataCollabWarning):
    """Only one party takes part, so there is nothing to align."""


class ApproximationWarning(DataCollabWarning):
    """An approximation did not reach the tolerance asked for; the message says how far it got."""


class UndeterminedTargetWarning(DataCollabWarning):
    """The eigengap is so small that other targets are as good as the one found; compare objectives, not targets."""


class RepeatableSecretWarning(DataCollabWarning):
    """A secret was drawn from a known ``random_state``: anybody who learns it can rebuild the obfuscation."""


class EffectWarning(DataCollabWarning):
    """An effect was estimated, but its interval may be too short: arms are unlike, or columns were lost on the way."""


class PrivateRowsWarning(DataCollabWarning):
    """Rows that were called public are also among a party's own; the message says how many, not which."""


class SmallClassWarning(DataCollabWarning):
    """A class has so few rows that their labels tell much of each; the message says how many classes, not which."""


class HeavyTailWarning(DataCollabWarning):
    """A few targets lie so far from the rest that they are clipped; the message says how many, not which."""


class FewEventsWarning(DataCollabWarning):
    """A total says hardly more of a class than its share of rows, from which probabilities then differ little."""


class UnsendableWarning(DataCollabWarning):
    """A model is about to be trained that no file can hold, so that no party elsewhere can get it."""


class SuppressedRowsWarning(DataCollabWarning):
    """A defence keeps rows from being shared; the message says how many, not which."""


EXIT_CODES = {
    "keys": 10,
    "verification": 11,
    "policy": 12,
    "schema": 13,
    "state": 14,
    "limits": 15,
    "model": 16,
    "remote": 17,
}
"""Exit codes of the program, by the kind of a refusal."""


@dataclass(frozen=True)
class Code:
    """A reason to refuse: its kind, a key of `EXIT_CODES`, and a sentence each on its meaning and the remedy."""

    kind: str
    meaning: str
    remedy: str

    @property
    def exit_code(self) -> int:
        """Return the exit code of the program."""
        return EXIT_CODES[self.kind]


_KINDS = tomllib.loads(Path(__file__).with_name("codes.toml").read_text(encoding="utf-8"))
CODES = {name: Code(kind, *texts) for kind, codes in _KINDS.items() for name, texts in codes.items()}
"""The library's codes by their names."""

_ADDED: dict[str, Code] = {}


def add_codes(codes: Mapping[str, Code]) -> None:
    """Add the codes of a plugin; raise a ValueError if one of the names has another meaning already."""
    known = all_codes()
    # A plugin may be loaded twice, and then adds the same again.
    taken = sorted(name for name, code in codes.items() if known.get(name, code) != code)
    if taken:
        raise ValueError(f"Codes of refusals that are taken: {', '.join(taken)}.")
    _ADDED.update(codes)


def all_codes() -> dict[str, Code]:
    """Return all codes by their names, those of plugins included."""
    return {**CODES, **_ADDED}
