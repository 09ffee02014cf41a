"""Settings of an operator."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from datacollab.errors import ExchangeError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits, and the address.

    Attributes
    ----------
    url : str
        The hub's name. Every signature covers it, so that nobody can pass a request on to another hub.
    file_bytes : int
        The most that a file may have.
    sender_bytes : int
        The most that a key's files and unfinished uploads in a project may have together; others' files do not
        count, so that nobody learns of it.
    part_bytes : int
        The least that a part of a file may have, but for the last.
    open_uploads : int
        The most unfinished uploads of a key.
    projects_per_key : int
        The most projects that a key may have opened.
    agreement_bytes : int
        The most that all revisions of the project files of a key's projects may have together.
    least_bytes_per_second : int
        A request's body has to come at this rate at least, over each ten seconds.
    requests_per_second : float
        Of a key, in the long run; four times as many at once.
    metrics_token : str, optional
        Who has it may read the metrics; without one, whoever asks from the same machine.
    """

    url: str
    # Room for 2.6 million rows of a hundred numbers.
    file_bytes: int = 2 * 1024**3
    # Twenty-five of the largest files, so that withdrawing old ones is seldom urgent.
    sender_bytes: int = 50 * 1024**3
    # Each part is a blob and a row: the largest file makes 32,768 of them at this size.
    part_bytes: int = 2**16
    open_uploads: int = 16
    projects_per_key: int = 100
    agreement_bytes: int = 64 * 1024**2
    # At this rate the largest body, of 4 MiB, takes 512 of the 600 seconds that it has.
    least_bytes_per_second: int = 8 * 1024
    # A folder asks a few times a minute; a program that asks more than this has gone wrong.
    requests_per_second: float = 50.0
    metrics_token: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        # A path or query would be lost below, and signatures cover the address letter by letter.
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
            raise ExchangeError(
                "REQUEST_MALFORMED",
                "The hub's address has to be http:// or https://, a name and perhaps a port, without a path. Give it "
                "with --url.",
            )
        # One spelling for all: a slash at the end would spoil every signature.
        object.__setattr__(self, "url", f"{parts.scheme}://{parts.netloc}")
