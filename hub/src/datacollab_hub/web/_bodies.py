"""Bodies of requests, in JSON: nothing missing, nothing else, of the right types."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from datacollab.bundle import parse_json
from datacollab.errors import ExchangeError

__all__ = ["Approval", "Invitation", "Joining", "NewProject", "Nothing", "Starting", "parse_body"]

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
