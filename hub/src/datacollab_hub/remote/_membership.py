"""Coming into a project at a hub: its owner opens it and invites, others join with a link."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from datacollab.bundle import MASK_CARD_PREFIX, KeyPair, PublicKey, key_with_proof
from datacollab.errors import ExchangeError
from datacollab.remote import invalid

from ._http import HubClient

# A hub may stand below a path, behind a proxy.
_PATH = re.compile(r"((?:/[A-Za-z0-9._~-]+)*)/v1/projects/([0-9a-f]{32})/join")
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")
ROLES = ("party", "analyst", "auditor")


@dataclass(frozen=True)
class Link:
    """An invitation: whoever has it may ask once to join.

    Attributes
    ----------
    url : str
        Of the hub.
    """

    url: str
    project: str
    secret: str

    @classmethod
    def of(cls, text: str) -> Link:
        """Read a link.

        Raises
        ------
        ExchangeError
            REMOTE_INVALID.

        Examples
        --------
        >>> Link.of("https://hub.example/v1/projects/" + "0" * 32 + "/join#" + "s" * 22).url
        'https://hub.example'
        """
        try:
            parts = urlsplit(text.strip())
        except ValueError:
            raise invalid("the link is no address") from None
        found = _PATH.fullmatch(parts.path)
        if parts.scheme not in ("https", "http") or not found or not _SECRET.fullmatch(parts.fragment):
            # The link is not repeated: with its secret others could join.
            raise invalid("the link is no invitation, as https://HUB/v1/projects/PROJECT/join#SECRET is one")
        return cls(f"{parts.scheme}://{parts.netloc}{found[1]}", found[2], parts.fragment)


@dataclass(frozen=True)
class Asked:
    """Somebody who asks to join.

    Attributes
    ----------
    name, role : str
        As the invitation said.
    key : PublicKey
        Proven to be theirs.
    text : str
        As their ``public.key`` has it.
    state : str
        Whether they wait, or the decision.
    """

    name: str
    role: str
    key: PublicKey
    text: str
    state: str = "waiting"


def open_project(client: HubClient, name: str) -> str:
    """Open a room at a hub; its name there is returned."""
    # Once: asked again after a lost answer, the hub would open a second one.
    answer = client.once_or_refused("POST", "/v1/projects", json={"name": name}, ok=(201,))
    project = answer.field("project", str)
    if not re.fullmatch("[0-9a-f]{32}", project):
        raise ExchangeError("REMOTE_REFUSED", f"{answer.what} answers with no project. Look whether that is a hub.")
    return str(project)


def invite(client: HubClient, project: str, name: str, role: str, days: int) -> str:
    """An invitation's link, which is a secret until it was used."""
    said = {"name": name, "role": role, "days": days}
    answer = client.once_or_refused("POST", f"/v1/projects/{project}/invitations", json=said, ok=(201,))
    link = Link.of(answer.field("link", str))
    if link.project != project:
        raise ExchangeError(
            "REMOTE_REFUSED",
            f"{answer.what} answers with a link to project {link.project}, and one to {project} was wanted. Do not "
            "send it; ask the operator.",
        )
    # The hub that was asked, whatever address it has put into its answer.
    return f"{client.url}/v1/projects/{project}/join#{link.secret}"


def join(client: HubClient, link: Link, key: KeyPair, card: str | None = None) -> None:
    """Ask to join, with the public key, its proof, and the card of a mask key if there is one."""
    text = key_with_proof(key)
    if card is not None:
        text += f"{card}\n"
    said = {"secret": link.secret, "public_key": text}
    client.ask("POST", f"/v1/projects/{link.project}/join", json=said, ok=(200, 201, 202))


def browser_link(client: HubClient) -> str:
    """A link that signs a browser in with this key, once and within two minutes; a secret until then."""
    answer = client.once_or_refused("POST", "/v1/sessions", json={}, ok=(201,))
    secret = answer.field("link", str).rpartition("/session/")[2]
    if not re.fullmatch("[A-Za-z0-9_-]{22,200}", secret):
        raise ExchangeError("REMOTE_REFUSED", f"{answer.what} answers with no link. Look whether that is a hub.")
    # The hub that was asked, whatever address it has put into its answer.
    return f"{client.url}/session/{secret}"


def requests_of(client: HubClient, project: str) -> list[Asked]:
    """Who asks to join; a key without its owner's proof is refused."""
    answer = client.ask("GET", f"/v1/projects/{project}/requests")
    return [_ask(each, answer.what) for each in answer.field("requests", list)]


def answer_request(client: HubClient, project: str, fingerprint: str, approve: bool) -> None:
    """Let somebody in, or not."""
    client.ask("POST", f"/v1/projects/{project}/requests/{fingerprint}", json={"approve": approve}, ok=(200, 201, 204))


def _ask(said: Any, what: str) -> Asked:
    try:
        name = said["name"]
        role = said["role"]
        text = said["public_key"]
        if not (isinstance(name, str) and isinstance(role, str) and isinstance(text, str)):
            raise TypeError
        word, *proofs = text.split()
        key = PublicKey.from_text(word, what=f"The key of {name[:64]!r}")
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ExchangeError):
            raise
        raise ExchangeError("REMOTE_REFUSED", f"{what} lists a request that cannot be. Ask the operator.") from None
    # One at most, directly after the proof.
    cards = [each for each in proofs[1:2] if each.startswith(MASK_CARD_PREFIX)]
    # A hub could put a key together itself; a proof it cannot make.
    if len(proofs) != 1 + len(cards) or not key.is_proven_by(proofs[0]):
        raise ExchangeError(
            "KEY_MALFORMED",
            f"The key of {name[:64]!r} at the hub is not signed by its owner, so its halves may be of two people. Do "
            "not take it; ask them for public.key by another way.",
        )
    state = said.get("state")
    if not isinstance(state, str):
        state = "waiting"
    lines = "".join(f"{each}\n" for each in (word, proofs[0], *cards))
    return Asked(name, role, key, lines, state)
