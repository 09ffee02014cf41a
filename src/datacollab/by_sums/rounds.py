"""The analyst's signed request for a further round: the state so far, for all parties."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ..agreement import Project
from ..bundle import Bundle, KeyPair, canonical_json, now, pack, parse_json, seal, unpack, unseal
from ..errors import ExchangeError
from ..study import RoundsSoFar

__all__ = ["ROUND_FILE", "ROUND_KIND", "NextRound", "read_round", "round_to_bytes"]

ROUND_KIND = "datacollab.round"
ROUND_FILE = "round.dcround"
_SEALED = "sealed.bin"
_FACTS = {"project_digest", "number", "created"}
_CONTENTS = {"number", "after", "so_far"}
_LARGEST = 30.0
"""The largest logarithm of a ratio across a column's range: e to the 30 is none that rows could tell."""


@dataclass(frozen=True, kw_only=True)
class NextRound:
    """A round after the first: its number, the context of the sum before it in hexadecimal digits, and the state."""

    number: int
    after: str
    so_far: RoundsSoFar

    def facts(self) -> dict[str, Any]:
        """Return the same for JSON, as it goes into the agreement on the round's sum."""
        return asdict(self)


def round_to_bytes(next_round: NextRound, project: Project, key: KeyPair) -> bytes:
    """Return the bytes of the request, signed with the analyst's key, and sealed to all parties and the analyst."""
    outside = {
        "project_digest": project.digest,
        "number": next_round.number,
        "created": now(),
    }
    contents = canonical_json(next_round.facts())
    sealed = seal(contents, [*project.parties.values(), project.analyst], purpose=_purpose(project))
    return pack(ROUND_KIND, outside, {_SEALED: sealed}, key=key)


def _purpose(project: Project) -> str:
    return f"round of {project.digest}"


def read_round(source: bytes, project: Project, key: KeyPair, *, where: str) -> NextRound:
    """Read a request of unknown origin; `key` is a party's, or the analyst's, and `where` the file's name in errors.

    An ExchangeError is raised if the analyst did not sign it, it is of another version of the project, or it asks for
    something else than the project says.
    """
    bundle = unpack(source, kind=ROUND_KIND, signed_by=project.analyst, what=where)
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{where} was made for another version of project {project.name!r}, or another run. Compare what "
            "`datacollab project show` prints on both sides, and ask for a new one.",
        )
    try:
        return _read_contents(bundle, project, key, where)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ExchangeError(
            "ROUND_UNFIT",
            f"{where} does not ask for a round that project {project.name!r} has. Nothing leaves; tell the analyst.",
        ) from None


def _read_contents(bundle: Bundle, project: Project, key: KeyPair, where: str) -> NextRound:
    """Return the request within; raise ValueError and its like if it is not as this program writes it."""
    if bundle.facts.keys() != _FACTS or bundle.members.keys() != {_SEALED}:
        raise ValueError
    try:
        contents = parse_json(unseal(bundle.members[_SEALED], key, purpose=_purpose(project)), what=where)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{where}: {error}") from None
    if contents.keys() != _CONTENTS:
        raise ValueError
    number = contents["number"]
    so_far = contents["so_far"]
    coefficients = tuple(map(float, so_far["coefficients"]))
    shares = tuple(map(float, so_far["shares"]))
    state = RoundsSoFar(so_far["n_done"], coefficients, float(so_far["n_rows"]), float(so_far["n_outcomes"]), shares)
    # Rounds follow each other, and none is after the last that was agreed on.
    is_numbered = type(number) is int and 1 < number <= project.sums.n_rounds and state.n_done == number - 1
    is_finite = all(map(math.isfinite, (*coefficients, *shares, state.n_rows, state.n_outcomes)))
    if not (is_numbered and is_finite and number == bundle.facts["number"] and isinstance(contents["after"], str)):
        raise ValueError
    # Coefficients that no rows give could look for single people.
    if max(map(abs, coefficients)) > _LARGEST:
        raise ValueError
    return NextRound(number=number, after=contents["after"], so_far=state)
