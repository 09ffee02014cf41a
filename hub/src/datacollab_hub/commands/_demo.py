"""``datacollab hub demo``: a hub on this machine, and an exchange through it, each command a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from datacollab.cli.kit import one_line_errors

from .._require import require
from ._members import hub_of, leading_page
from ._stage import Stage, Step

PARTIES = ("hospital-a", "hospital-b", "hospital-c", "hospital-d", "hospital-e")
OWNER, *OTHERS = PARTIES
SHOWN = PARTIES[:2]
"""Those that are seen to use the model."""
ANALYST = "analyst"
_NEEDED = {"fastapi": "server", "sqlalchemy": "server", "alembic": "server"}
_HERE = "127.0.0.1"
_PATIENCE = 120.0
"""Seconds until the hub has to answer."""


def demo(
    output: Annotated[Path, Option("--output", "-o", metavar="DIR", help="A new directory.")] = Path("output/hub-demo"),
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the link to the hub's page.")] = False,
    no_wait: Annotated[bool, Option("--no-wait", help="End with the last step.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print where the predictions lie as JSON, and no steps.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No steps.")] = False,
) -> None:
    """Play an exchange through a hub on this machine, which stays until Ctrl-C.

    Five hospitals share sums under masks. They and the analyst have directories of their own, and each command is a
    process of its own.

    Example: datacollab hub demo --output hub-demo
    """
    with one_line_errors(f"The hub has ended; the files in {output} are as the last step left them."):
        predictions = play_hub(output, quiet=quiet or as_json, wait=not no_wait, browser=not no_browser)
        if as_json:
            typer.echo(json.dumps({"predictions": str(predictions)}, indent=2))


def play_hub(output: Path, *, quiet: bool, wait: bool, browser: bool) -> Path:
    """Start a hub and play an exchange through it; return the owner's predictions.

    Parameters
    ----------
    output : Path
        A new directory, in which the hub and everybody get one.
    quiet : bool
        Whether to print nothing but errors.
    wait : bool
        Whether the hub goes on afterwards, until Ctrl-C.
    browser : bool
        Whether the hub's page is opened then.

    Raises
    ------
    ValueError
        When something is in the directory already, or a step fails.
    """
    # Before anything is made, or the folder would be in the way of the next attempt.
    for module, extra in _NEEDED.items():
        require(module, extra)
    start = time.monotonic()
    with Stage(output, quiet=quiet) as stage, _reached_directly():
        url, hub = _hub_started(stage)
        _let_in(stage, url)
        _distribute_agreement(stage)
        _share_all(stage)
        _train(stage)
        _used(stage)
        stage.say(f"\nDone in {time.monotonic() - start:.0f} s. Everybody's folder is in {output}.")
        if wait:
            _stay(stage, hub, browser=browser)
    return output / "predictions.csv"


def _hub_started(stage: Stage) -> tuple[str, subprocess.Popen[str]]:
    """A hub at a free port, and its address."""
    small = ("--rows", "100", "--public", "200", "--columns", "16")
    stage.play(
        Step("Tables to try it with, and keys for everybody.", ("data", "deal", "digits", "tables", *small)),
        Step("", ("keys", "new", *PARTIES, ANALYST)),
    )
    stage.play(Step("The hub's operator lets the owner's key open projects.",
                    ("hub", "allow", f"{OWNER}/public.key", "--data", "hub")))  # fmt: skip
    # A port that the system finds free; another program hardly takes it in between.
    with socket.socket() as place:
        place.bind((_HERE, 0))
        port = place.getsockname()[1]
    words = ("hub", "serve", "--data", "hub", "--port", str(port))
    hub = stage.serve(Step("The hub starts. It keeps all in its folder.", words), stage.folder / "hub.log")
    url = f"http://{_HERE}:{port}"
    _await(hub, url, stage.folder / "hub.log")
    return url, hub


def _await(hub: subprocess.Popen[str], url: str, log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while hub.poll() is None and time.monotonic() < end:
        # Refused until the hub listens.
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(f"{url}/readyz", timeout=5):
            return
        time.sleep(0.05)
    raise ValueError(f"The hub did not start. Look at {log}.")


def _let_in(stage: Stage, url: str) -> None:
    """The owner opens a project, and lets the others in."""
    stage.play(Step("The owner, who is a party too, opens a project.", ("remote", "add", "hub", url, "-C", OWNER)))
    stage.play(Step("", ("remote", "open", "digits", "-C", OWNER)))
    note = "The owner invites the others. Each link is a secret that works once."
    roles = dict.fromkeys(OTHERS, "party") | {ANALYST: "analyst"}
    inviting = (
        Step("", ("remote", "invite", name, "--role", role, "-C", OWNER, "--json")) for name, role in roles.items()
    )
    made = stage.play(*_add_note(note, inviting))
    # On standard input, as a command's words can be listed by others.
    links = [f"{json.loads(each)['link']}\n" for each in made]
    asking = (Step("", ("remote", "join", "-", "-C", name), link) for name, link in zip(roles, links, strict=True))
    stage.play(*_add_note("They ask to join, each with the link that they got.", asking))
    (waiting,) = stage.play(
        Step("The owner sees who asks, and approves. In earnest, each reads their fingerprint out by telephone first.",
             ("remote", "requests", "-C", OWNER, "--json"))
    )  # fmt: skip
    asked = [each["fingerprint"] for each in json.loads(waiting)["requests"]]
    stage.play(*(Step("", ("remote", "approve", each, "-C", OWNER)) for each in asked))


def _distribute_agreement(stage: Stage) -> None:
    """Project file and anchor reach everybody."""
    members = [word for party in PARTIES for word in ("--party", f"{party}={party}/public.key")]
    stage.play(
        Step(
            "The owner drafts the project from public rows, and signs it. Parties share sums under masks.",
            (
                *("project", "new", "digits", "--like", "tables/public.csv", "--target", "digit"),
                *("--purpose", "Recognise digits.", *members, "--analyst", f"{ANALYST}/public.key"),
                *("--range", "0", "1", "-C", OWNER, "-o", "project.toml"),
            ),
        )
    )
    stage.play(Step("The owner makes the anchor and seals it to the parties.",
                    ("anchor", "seal", "tables/public.csv", "--project", "project.toml", "-C", OWNER,
                     "-o", "anchor.dcanchor")))  # fmt: skip
    both = ("project.toml", "anchor.dcanchor")
    stage.play(Step("The owner sends both to the hub.", ("remote", "push", *both, "-C", OWNER)))
    stage.play(
        *_each(
            "The others fetch what is for them; the anchor is not for the analyst.",
            ("remote", "pull"),
            (*OTHERS, ANALYST),
        )
    )
    known = ("--owner", f"{OWNER}/public.key")
    pulled = ("{0}/inbox/project.toml", "{0}/inbox/anchor.dcanchor")
    stage.play(
        Step("Everybody sets their folder up for the project.", ("party", "join", *both, *known, "-C", OWNER)),
        *_each("", ("party", "join", *pulled, *known), OTHERS),
        Step("", ("analyst", "init", f"{ANALYST}/inbox/project.toml", *known, "-C", ANALYST)),
    )


def _share_all(stage: Stage) -> None:
    """Each party shares."""
    note = "Each party shares once: sums over its rows leave, under masks that cancel in the total of all. "
    note += "Before that, two others read their fingerprints out to it by telephone."
    from datacollab.bundle import PublicKey  # It loads NumPy, which other commands need not wait for.

    keys = {party: PublicKey.load(stage.folder / party / "public.key") for party in PARTIES}
    for party in PARTIES:
        heard = [f"--heard={key.fingerprint}" for other, key in keys.items() if other != party]
        stage.play(*_each(note, ("party", "share", "tables/{}.csv", "--approve", *heard[:2]), (party,)))
        note = ""
    stage.play(*_each("The files go to the hub, which cannot read them.", ("remote", "push")))


def _train(stage: Stage) -> None:
    """The analyst's part."""
    stage.play(*_each("The analyst fetches them.", ("remote", "pull"), (ANALYST,)))
    sums = [f"{ANALYST}/inbox/{party}.dcsum" for party in PARTIES]
    stage.play(Step("The analyst adds up all files, reads the total alone, and makes one model of it.",
                    ("analyst", "integrate", *sums, "-C", ANALYST)))  # fmt: skip
    stage.play(*_each("The analyst writes a model for each party.", ("analyst", "export"), (ANALYST,)))
    stage.play(*_each("Models go to the hub.", ("remote", "push"), (ANALYST,)))
    stage.play(*_each("Each party fetches its own; two are shown.", ("remote", "pull"), SHOWN))


def _used(stage: Stage) -> None:
    """From now on without the hub."""
    note = "They install it; the model within is the same for all."
    stage.play(*_each(note, ("party", "install", "{0}/inbox/{0}.dcmodel"), SHOWN))
    stage.play(
        Step("From now on each predicts alone, without a network.",
             ("party", "predict", "tables/new.csv", "-o", "predictions.csv", "-C", OWNER)),
        Step("How good is it?", ("party", "evaluate", "tables/new.csv", "-C", SHOWN[1]), is_shown=True),
    )  # fmt: skip


def _stay(stage: Stage, hub: subprocess.Popen[str], *, browser: bool) -> None:
    """Keep the hub until Ctrl-C."""
    stage.say("Go on by hand, in another terminal:")
    stage.say(f"  {shlex.join(['datacollab', 'remote', 'dashboard', '-C', str(stage.folder.absolute() / SHOWN[1])])}")
    for who in (*PARTIES, ANALYST):
        stage.say(f"  {shlex.join(['datacollab', 'desk', '-C', str(stage.folder.absolute() / who)])}")
    link = _sign_in_link(stage.folder / OWNER)
    page: AbstractContextManager[None] = nullcontext()
    if browser:
        page = _browsing(link, stage.folder / OWNER)
        stage.say("The browser opens the hub's page, as the owner.")
    else:
        stage.say(f"The hub's page, as the owner; the link works once, for two minutes:\n  {link}")
    with suppress(KeyboardInterrupt), page:
        # Said where it holds already: who reads it may press the keys at once.
        stage.say("The hub runs until Ctrl-C.")
        hub.wait()
        raise ValueError(f"The hub ended by itself. Look at {stage.folder / 'hub.log'}.")
    stage.say("The hub has ended.")


def _sign_in_link(folder: Path) -> str:
    """Return the link that signs a browser in as the folder's key."""
    from ..remote import browser_link

    with hub_of(folder, None, None) as (_, hub):
        return browser_link(hub.client)


@contextmanager
def _browsing(link: str, folder: Path) -> Iterator[None]:
    with leading_page(link, folder) as page:
        # A browser of the terminal ends when its user does.
        threading.Thread(target=webbrowser.open, args=(page.absolute().as_uri(),), daemon=True).start()
        yield


@contextmanager
def _reached_directly() -> Iterator[None]:
    """No proxy stands between programs of one machine."""
    before = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    # In both spellings, as programs look at one or the other.
    os.environ.update(dict.fromkeys(before, _HERE))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _each(note: str, words: tuple[str, ...], folders: Iterable[str] = PARTIES) -> Iterator[Step]:
    """Yield a command in several folders, whose names stand for the braces in its words."""
    return _add_note(note, (Step("", (*(word.format(folder) for word in words), "-C", folder)) for folder in folders))


def _add_note(note: str, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps with one note, before the first."""
    for index, step in enumerate(steps):
        yield step if index else replace(step, note=note)
