"""The signed parts of a request, for both sides."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

__all__ = ["CLOCK_WINDOW", "DIGEST", "TAG", "Message", "parts_to_sign", "signatures"]

# Wide enough for machines whose clock nobody sets; a hub remembers nonces for as long.
CLOCK_WINDOW = 300
"""Seconds by which the clocks of both sides may differ."""

TAG = "datacollab-hub-1"
"""Says what the signature is for, so that it is of no use elsewhere."""

DIGEST = "content-digest"
# RFC 9421, section 2.2: the authority binds a request to one hub, path and query to one question.
_ALWAYS = ("@method", "@authority", "@path", "@query")


@dataclass
class Message:
    """A request as the library reads it, which puts its headers into a dictionary of our own.

    Attributes
    ----------
    method, url : str
        The address as it is sent: absolute, other characters are written as percent signs and digits.
    headers : dict of str to str
    """

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, method: str, url: str, headers: Mapping[str, str]) -> Message:
        """A request, with the headers that signatures are about."""
        # Nothing else is signed, so the library need not see it.
        ours = (DIGEST, "signature", "signature-input")
        return cls(method.upper(), url, {name: value for name, value in headers.items() if name.lower() in ours})


def parts_to_sign(has_body: bool) -> tuple[str, ...]:
    """Return the parts of a request that are signed: method, address, audience, and the body where there is one."""
    return (*_ALWAYS, DIGEST) if has_body else _ALWAYS


def signatures() -> ModuleType:
    """The library that knows RFC 9421 and RFC 9530."""
    # Loaded with the first request: whoever only asks for help waits for nothing.
    return importlib.import_module("http_message_signatures")
