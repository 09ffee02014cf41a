"""Bodies of requests: of the right types, and so many at once of one key, project and owner, and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from datacollab.bundle import parse_json
from datacollab.errors import ExchangeError

# A number that every database holds; the operator's own limit is far below.
_MOST_BYTES = 2**50


class _Body(BaseModel):
    # An unknown entry is refused, or its sender would believe that it was heeded.
    model_config = ConfigDict(extra="forbid", strict=True)


class Nothing(_Body):
    """Of requests that need to say nothing more."""


class NewProject(_Body):
    """Of a project to open."""

    name: str


class Invitation(_Body):
    """Of an invitation to make."""

    name: str
    role: str
    # A year at most, as a link is a secret that lies in somebody's mail.
    days: Annotated[int, Field(ge=1, le=366)]


class Joining(_Body):
    """Of a key that presents itself."""

    # Still a stranger's words: longer ones are none of ours.
    secret: Annotated[str, Field(max_length=200)]
    public_key: Annotated[str, Field(max_length=1024)]


class Approval(_Body):
    """Of an owner's decision."""

    approve: bool


class Starting(_Body):
    """Of an upload to begin."""

    kind: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=1, le=_MOST_BYTES)]
    recipient: str | None = None


_Any = TypeVar("_Any", bound=_Body)


def parse_body(model: type[_Any], body: bytes) -> _Any:
    """Read a request's body.

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``, naming entries of the model alone, and no value.
    """
    try:
        return model.model_validate(parse_json(body or b"{}", what="The request's body"))
    except ExchangeError as error:
        raise ExchangeError("REQUEST_MALFORMED", str(error)) from None
    except ValidationError as error:
        # Of the model's names alone, as all others are the sender's text.
        named = {str(each["loc"][0]) for each in error.errors() if each["loc"]} & model.model_fields.keys()
        what = ", ".join(sorted(named)) or "the body as a whole"
        wanted = ", ".join(model.model_fields) or "none"
        raise ExchangeError(
            "REQUEST_MALFORMED",
            f"The request's body is wrong in: {what}. Wanted are the entries {wanted}, of the types that docs/hub.md "
            "says.",
        ) from None


# Of 4 MiB each: 256 MiB of memory at most, in all processes together.
_MOST = 64
# An eighth, a quarter and a half, so that nobody keeps all others out.
_MOST_OF_KEY = 8
_MOST_OF_PROJECT = 16
_MOST_OF_OWNER = 32
_MOST_OF_STRANGERS = 32


class Bodies:
    """Places for bodies, which are held in memory; for the event loop's thread alone.

    Parameters
    ----------
    n_processes : int
        That share the places, an equal number each.
    """

    def __init__(self, n_processes: int = 1) -> None:
        self._of: Counter[tuple[str, str]] = Counter()
        most = {
            "known": _MOST,
            "key": _MOST_OF_KEY,
            "project": _MOST_OF_PROJECT,
            "owner": _MOST_OF_OWNER,
            "strangers": _MOST_OF_STRANGERS,
        }
        # Rounded up, so that each process has a place at least.
        self._most = {name: -(-number // n_processes) for name, number in most.items()}

    @contextmanager
    def held(self, fingerprint: str | None, project: str | None = None, owner: str | None = None) -> Iterator[None]:
        """Take a place, until the request is answered.

        Parameters
        ----------
        fingerprint : str, optional
            Who asks; None for strangers, whose bodies are small, and who take no place of those that are known.
        project : str, optional
            The request's project. Requests about none share the places of one project.
        owner : str, optional
            Who opened the project: one key's projects do not hold all places together.

        Raises
        ------
        ExchangeError
            ``TOO_MANY_REQUESTS``.
        """
        taken = [("strangers", "")]
        if fingerprint is not None:
            taken = [("known", ""), ("key", fingerprint), ("project", project or ""), ("owner", owner or fingerprint)]
        # Refused and not made to wait, as a queue takes memory too.
        if any(self._of[each] >= self._most[each[0]] for each in taken):
            raise ExchangeError("TOO_MANY_REQUESTS", "Too many requests with a body come at once. Wait a second.")
        self._of.update(taken)
        try:
            yield
        finally:
            self._of.subtract(taken)
            for each in taken:
                # Otherwise each key that ever asked would stay in memory.
                if not self._of[each]:
                    del self._of[each]
