"""Requests to a hub: signed anew each time, asked again where the network fails, and answers that are not believed."""

from __future__ import annotations

import random
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from datacollab import __version__
from datacollab.bundle import KeyPair, canonical_json, parse_json
from datacollab.errors import ExchangeError
from datacollab.plugins import all_codes

from ..requests import sign_request

# Whatever Python or a terminal takes for the end of a line.
_ENDS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# Control characters, and those that turn the direction of writing.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def harmless(value: Any) -> Any:
    r"""A value of JSON with all its texts, keys too, on a line each and without letters that steer.

    Examples
    --------
    >>> harmless({"message": "in\nvain\x1b[2J", "n": [1, None]}) == {"message": "in vain\ufffd[2J", "n": [1, None]}
    True
    """
    if isinstance(value, str):
        return _STEERING.sub("\N{REPLACEMENT CHARACTER}", _ENDS.sub(" ", value))
    if isinstance(value, list):
        return [harmless(each) for each in value]
    if isinstance(value, dict):
        return {harmless(key): harmless(each) for key, each in value.items()}
    return value


AGAIN = frozenset({408, 429, 502, 503, 504})
"""Statuses of answers that may be others a little later."""

# Seconds of one pause, whatever a hub asks for.
_LONGEST = 60.0


@dataclass(frozen=True)
class Patience:
    """Waits twice as long each time, and somewhat at random, so that many who wait do not come back at once.

    Attributes
    ----------
    attempts : int
        How often something is tried in all.
    first : float
        Seconds to wait after the first failure.
    """

    # Seven attempts last half a minute together, in which a hub can be begun anew.
    attempts: int = 7
    first: float = 0.5
    sleep: Callable[[float], None] = time.sleep

    def wait(self, n_failed: int, wanted: str | None = None) -> None:
        """Wait after so many failures.

        Parameters
        ----------
        n_failed : int
            One or more.
        wanted : str, optional
            Seconds that the hub asks for.
        """
        seconds = self.first * 2.0 ** (n_failed - 1) * random.uniform(0.5, 1.0)
        # Retry-After may be a date too (RFC 9110, section 10.2.3), and then counts for nothing.
        if wanted is not None and wanted.isdecimal() and len(wanted) < 6:
            seconds = max(seconds, float(wanted))
        self.sleep(min(seconds, _LONGEST))


# Bytes of an answer in JSON; files are streamed, and end at the size that was listed.
_MOST_ANSWER = 16 * 2**20
# A hub writes a few sentences; another server may send a page.
_MOST_WORDS = 600
# Seconds without a byte: a hub checks all of a large file before it answers.
_TIMEOUT = 60.0
_CONNECT = 15.0


class Interrupted(Exception):  # noqa: N818
    """The network failed, or the hub asked to come back later; whether it carried the request out is not known.

    Attributes
    ----------
    wanted : str or None
        Seconds to wait, as the hub said.
    refusal : ExchangeError or None
        Further words of the hub.
    """

    def __init__(self, reason: str, wanted: str | None = None, refusal: ExchangeError | None = None) -> None:
        super().__init__(reason)
        self.wanted = wanted
        self.refusal = refusal


class RefusedByHubError(ExchangeError):
    """A refusal of a hub, by a code of this version.

    Attributes
    ----------
    said : str
        The hub's own code, which a later version may have.
    """

    def __init__(self, code: str, message: str, said: str) -> None:
        super().__init__(code, message)
        self.said = said


@dataclass(frozen=True)
class Answer:
    """An answer of a hub.

    Attributes
    ----------
    what : str
        Whom an error names.
    """

    status: int
    headers: Mapping[str, str]
    data: bytes
    what: str

    def field(self, name: str, kind: type | tuple[type, ...], *, verbatim: bool = False) -> Any:
        """An entry of the JSON object in it; ``verbatim`` as of `json`.

        Raises
        ------
        ExchangeError
            REMOTE_REFUSED, where there is none of this kind.
        """
        value = self.json(verbatim=verbatim).get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ExchangeError(
                "REMOTE_REFUSED", f"{self.what} answers without {name!r}. Look whether that is a hub, and of which age."
            )
        return value

    def json(self, *, verbatim: bool = False) -> dict[str, Any]:
        """The JSON object in it, whose texts may be shown.

        Parameters
        ----------
        verbatim : bool
            Whether texts stay as they came, to be hashed and shown to nobody.

        Raises
        ------
        ExchangeError
            REMOTE_REFUSED, where it is none.
        """
        try:
            value = parse_json(self.data, what=self.what)
        except ExchangeError:
            value = None
        if not isinstance(value, dict):
            raise ExchangeError(
                "REMOTE_REFUSED", f"{self.what} answers with something else than JSON. Look whether that is a hub."
            )
        return value if verbatim else harmless(value)


class HubClient:
    """A connection to a hub, for somebody with keys.

    Parameters
    ----------
    url : str
    key : KeyPair
    ca : Path, optional
        Certificates that are trusted besides those of the system.
    patience : Patience, optional
    transport : object, optional
        Of httpx, for tests.
    """

    def __init__(
        self, url: str, key: KeyPair, *, ca: Path | None = None, patience: Patience | None = None, transport: Any = None
    ) -> None:
        # Loaded here: whoever only asks for help waits for nothing.
        import httpx

        self._httpx = httpx
        self.url = url.rstrip("/")
        self.key = key
        self.patience = patience or Patience()
        self._client = self._httpx.Client(
            verify=_context(self._httpx, ca),
            timeout=self._httpx.Timeout(_TIMEOUT, connect=_CONNECT),
            # Not packed, as a few bytes of that could become more than memory holds.
            headers={"User-Agent": f"datacollab/{__version__}", "Accept-Encoding": "identity"},
            # A redirection would send what was signed for one machine to another.
            follow_redirects=False,
            transport=transport,
        )

    def ask(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        ok: tuple[int, ...] = (200,),
    ) -> Answer:
        """Ask, and again where the network fails. The request must be harmless if it arrives twice.

        Parameters
        ----------
        method, path : str
        json : object, optional
            Contents of the body.
        body : bytes
        headers : mapping of str to str, optional
        ok : tuple of int
            Statuses that are no refusal.

        Raises
        ------
        ExchangeError
            A refusal of the hub, by its code where this version knows it; REMOTE_UNREACHABLE, TLS_UNTRUSTED.
        """
        failed = 0
        while True:
            try:
                return self.once(method, path, json=json, body=body, headers=headers, ok=ok)
            except Interrupted as interrupted:
                failed += 1
                self.wait(failed, interrupted)

    def once_or_refused(self, method: str, path: str, *, json: object, ok: tuple[int, ...]) -> Answer:
        """Ask once, and not again where the network fails: the hub would carry the request out twice."""
        try:
            return self.once(method, path, json=json, ok=ok)
        except Interrupted as interrupted:
            raise interrupted.refusal or ExchangeError(
                "REMOTE_UNREACHABLE",
                f"{self.url} did not answer ({interrupted}), and whether it did what was asked is not known. Look at "
                "the network; asking again does it anew.",
            ) from interrupted

    def wait(self, failed: int, interrupted: Interrupted) -> None:
        """Wait after so many failures in a row.

        Raises
        ------
        ExchangeError
            REMOTE_UNREACHABLE, when they were enough; or the hub's refusal.
        """
        # The hub's own words tell more than that it does not answer.
        if failed >= self.patience.attempts and interrupted.refusal is not None:
            raise interrupted.refusal
        if failed >= self.patience.attempts:
            raise ExchangeError(
                "REMOTE_UNREACHABLE",
                f"{self.url} does not answer ({interrupted}; tried {failed} times). Look at the network, proxies and "
                "the address; then run the command again, which goes on where this one ended.",
            ) from interrupted
        self.patience.wait(failed, interrupted.wanted)

    def once(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        ok: tuple[int, ...] = (200,),
    ) -> Answer:
        """Ask a single time; as `ask` otherwise.

        Raises
        ------
        Interrupted, ExchangeError
        """
        told = dict(headers or {})
        if json is not None:
            body = canonical_json(json)
            told["Content-Type"] = "application/json"
        with self.streamed(method, path, body=body, headers=told, ok=ok) as (response, what):
            return Answer(response.status_code, response.headers, _read_bounded(response, what), what)

    @contextmanager
    def streamed(
        self, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str], ok: tuple[int, ...] = (200,)
    ) -> Iterator[tuple[Any, str]]:
        """The answer of httpx before its body was read, and the name that errors give it.

        Raises
        ------
        Interrupted, ExchangeError
        """
        what = f"{method} {self.url}{path}"
        request = self._client.build_request(method, f"{self.url}{path}", content=body, headers=dict(headers))
        # Signed as httpx spells the address, which is how it is sent.
        request.headers.update(sign_request(method, str(request.url), request.headers, body, self.key))
        try:
            response = self._client.send(request, stream=True)
            try:
                # Before the first byte of the body is unpacked.
                _check_plain(response, what)
                if response.status_code not in ok:
                    refusal = _refusal(
                        Answer(response.status_code, response.headers, _read_bounded(response, what), what)
                    )
                    # Something on the way sent it twice, and the other was first: one that is signed anew is told.
                    if response.status_code not in AGAIN and refusal.code != "REPLAYED":
                        raise refusal
                    said: ExchangeError | None = refusal
                    if refusal.code == "REMOTE_REFUSED":
                        # Words of a proxy on the way, which say nothing of the hub.
                        said = None
                    raise Interrupted(f"status {response.status_code}", response.headers.get("Retry-After"), said)
                yield response, what
            finally:
                response.close()
        except self._httpx.TransportError as error:
            # To wait and ask again would not help.
            if _is_untrusted(error):
                raise ExchangeError(
                    "TLS_UNTRUSTED",
                    f"The certificate of {self.url} is not trusted here. Where its organisation signs its own, add the "
                    "remote with --ca FILE, and take that file from its operator by another way.",
                ) from error
            raise Interrupted(f"{type(error).__name__}") from error
        except self._httpx.InvalidURL as error:
            raise ExchangeError(
                "REMOTE_REFUSED", f"{what} answers what cannot be read ({type(error).__name__}). Look at the address."
            ) from error

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()


def _context(httpx: Any, ca: Path | None) -> ssl.SSLContext:
    context: ssl.SSLContext = httpx.create_ssl_context()
    # An organisation's own authority may be known to the system alone.
    context.load_default_certs()
    if ca is not None:
        try:
            context.load_verify_locations(cafile=str(ca))
        except (OSError, ssl.SSLError) as error:
            raise ExchangeError(
                "REMOTE_INVALID",
                f"{ca} holds no certificates in PEM form that can be read ({type(error).__name__}). Ask the hub's "
                "operator for the file.",
            ) from None
    return context


def _check_plain(response: Any, what: str) -> None:
    """Refuse a compressed answer that nobody asked for: a few bytes could become more than memory holds."""
    if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise ExchangeError(
            "REMOTE_REFUSED", f"{what} answers in a packed form, which was not asked for. Look at proxies on the way."
        )


def _read_bounded(response: Any, what: str) -> bytes:
    data = bytearray()
    for piece in response.iter_bytes():
        data += piece
        # Counted as it comes, whatever the head has promised.
        if len(data) > _MOST_ANSWER:
            raise ExchangeError(
                "TOO_LARGE", f"{what} answers with more than {_MOST_ANSWER} bytes. Look at the address."
            )
    return bytes(data)


def _refusal(answer: Answer) -> ExchangeError:
    """Return a refusal in the hub's words, with its code if it is one of ours. Its words are others' text, and cut."""
    try:
        said = answer.json()
    except ExchangeError:
        said = {}
    code = said.get("code")
    message = said.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return ExchangeError(
            "REMOTE_REFUSED",
            f"{answer.what} answers with status {answer.status}, and not as a hub does. Look at the address, and at "
            "proxies on the way.",
        )
    words = message[:_MOST_WORDS]
    if code == "CLOCK_SKEW":
        words += _difference(answer.headers.get("Date"))
    # A later version's code is shown, and nothing here acts on it.
    if code in all_codes():
        return RefusedByHubError(code, f"{words} (said by the hub)", code)
    return RefusedByHubError("REMOTE_REFUSED", f"{answer.what}: {code[:60]}: {words}", code)


def _difference(date: str | None) -> str:
    """Return how far the clocks are apart, if the hub tells its time."""
    try:
        there = parsedate_to_datetime(date or "")
        if there.utcoffset() is None:
            # "-0000" is universal time, of a machine that does not say where it stands.
            there = there.replace(tzinfo=UTC)
        seconds = round((datetime.now(UTC) - there).total_seconds())
    except (ValueError, OverflowError):
        return ""
    words = "ahead of" if seconds > 0 else "behind"
    return f" The clock of this machine is {abs(seconds)} seconds {words} the hub's, which says {there.isoformat()}."


def _is_untrusted(error: BaseException | None) -> bool:
    # httpx wraps the TLS library's error, perhaps more than once.
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
