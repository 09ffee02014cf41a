"""A project from invitation to predictions, in a browser: a hub, two parties' desks and an analyst's are processes."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from datacollab.by_rows.party._stored_party import load_party
from datacollab.steps.party import PartyFolder
from hub_process import HubProcess, free_port
from party_world import allow_without_audit

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("fastapi", reason="the extra 'hub' is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(CHROMIUM is None, reason="no chromium was found on this machine")]
PROGRAM = (sys.executable, "-m", "datacollab")
PARTIES, ANALYST = ("north", "south"), "analyst"
WIDTHS = (390, 1280)
PATIENCE = 300
"""Seconds for a step that takes some."""


class Play:
    """Folders of everybody, and the programs that work in them."""

    def __init__(self, root, stack):
        self.root, self.stack = root, stack
        self.environment = {**os.environ, "NO_PROXY": "127.0.0.1", "COLUMNS": "200"}

    def run(self, *words, folder=None, stdin=None):
        """What a command prints."""
        at = () if folder is None else ("-C", folder)
        done = subprocess.run(
            [*PROGRAM, *map(str, words), *at],
            cwd=self.root, env=self.environment, input=stdin, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def start(self, *words):
        """A program that runs until the test ends."""
        with open(self.root / f"{words[0]}-{words[-1].strip('/').replace('/', '-')}.log", "w") as log:
            program = subprocess.Popen(
                [*PROGRAM, *words], cwd=self.root, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.stack.callback(program.stdout.close)
        self.stack.callback(program.wait)
        self.stack.callback(program.terminate)
        return program

    def hub(self):
        """A hub's address."""
        return self.stack.enter_context(HubProcess(self.root / "hub", free_port(), self.root / "hub.log")).url

    def desk(self, folder):
        """The link to a desk."""
        program = self.start("desk", "--no-browser", "-C", folder)
        for line in program.stdout:
            found = re.search(r"http://\S+", line)
            if found:
                return found[0]
        raise AssertionError("the desk did not start")


class Screen:
    """A browser of one person, who has no script and asks nobody else for anything."""

    def __init__(self, browser, pictures):
        self.context = browser.new_context(java_script_enabled=False)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.pictures, self.asked, self.complaints = pictures, [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))

    def open(self, link):
        self.page.goto(link)
        self.origin = re.match(r"http://[^/]+", link)[0]
        return self

    def look(self, name):
        """Check that the page fits a telephone and a desk, and keep pictures."""
        self.page.wait_for_load_state()
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width, name
            if self.pictures is not None:
                self.page.screenshot(path=self.pictures / f"{width}-{name}.png", full_page=True)
        return self.page.locator("main").inner_text()

    def click(self, name, role="button"):
        self.page.get_by_role(role, name=name).first.click()

    def check(self):
        assert {url.startswith(self.origin) for url in self.asked} == {True}
        assert self.complaints == []


def agreed(play, url):
    """Keys, room, invitations; the owner approves; project file and anchor are at the hub, and everybody has them."""
    play.run("data", "deal", "digits", "tables", "--rows", 120, "--public", 300, "--columns", 32,
             *(word for party in PARTIES for word in ("--party", party)))  # fmt: skip
    play.run("remote", "add", "hub", url, folder="north")
    play.run("remote", "open", "digits", folder="north")
    for name, role in (("south", "party"), (ANALYST, "analyst")):
        link = json.loads(play.run("remote", "invite", name, "--role", role, "--json", folder="north"))["link"]
        play.run("remote", "join", "-", folder=name, stdin=f"{link}\n")
    yield "asked"
    for asked in json.loads(play.run("remote", "requests", "--json", folder="north"))["requests"]:
        play.run("remote", "approve", asked["fingerprint"], folder="north")
    members = [word for party in PARTIES for word in ("--party", f"{party}={party}/public.key")]
    play.run("project", "new", "digits", "--like", "tables/public.csv", "--target", "digit",
             "--purpose", "Recognise digits.", *members, "--analyst", f"{ANALYST}/public.key",
             "--range", 0, 1, "--anchor-rows", 300, "--rows", "-o", "project.toml", folder="north")  # fmt: skip
    play.run(
        "anchor", "seal", "tables/public.csv", "--project", "project.toml", "-o", "anchor.dcanchor", folder="north"
    )
    play.run("remote", "push", "project.toml", "anchor.dcanchor", folder="north")
    for name in ("south", ANALYST):
        play.run("remote", "pull", folder=name)
    play.run("analyst", "init", f"{ANALYST}/inbox/project.toml", "--owner", "north/public.key", folder=ANALYST)
    yield "agreed"


def joins(screen, play, party):
    screen.page.goto(f"{screen.origin}/join")
    if party == "south":
        # What came is chosen already.
        assert screen.page.locator("#inbox").input_value() == "project.toml"
        assert screen.page.locator("#anchor_inbox").input_value() == "anchor.dcanchor"
    else:
        screen.page.locator("#path").fill(str(play.root / "project.toml"))
        screen.page.locator("#anchor_path").fill(str(play.root / "anchor.dcanchor"))
    screen.click("Look at it")
    assert "by telephone" in screen.look(f"{party}-join")
    screen.page.get_by_label("I have compared").check()
    screen.click("Join")
    screen.page.get_by_role("heading", name=f"Party {party} of project digits").wait_for()
    allow_without_audit(play.root / party / "policy.toml")


def shares(screen, play, party):
    screen.page.goto(f"{screen.origin}/table")
    screen.page.get_by_label("Path on this machine").fill(str(play.root / "tables" / f"{party}.csv"))
    screen.click("Look at it")
    screen.page.wait_for_url("**/wrong")
    assert "120 rows fit the project" in screen.look(f"{party}-wrong")
    screen.click("Next: what would leave", "link")
    screen.page.locator("summary", has_text="More options").click()
    screen.page.locator("#no_audit").check()
    screen.click("Look at what would leave")
    screen.page.get_by_role("button", name="Next: approve").wait_for()
    screen.look(f"{party}-release")
    screen.click("Next: approve")
    screen.page.get_by_label("Name of the person who approves").fill("Officer")
    screen.look(f"{party}-approve")
    screen.click("It may leave")
    screen.page.wait_for_url("**/outbox")
    assert "datacollab remote push" in screen.look(f"{party}-outbox")
    play.run("remote", "push", folder=party)


def trains(screen, play):
    play.run("remote", "pull", folder=ANALYST)
    screen.page.goto(f"{screen.origin}/shares")
    screen.page.get_by_label("Path on this machine").fill(str(play.root / ANALYST / "inbox"))
    screen.click("Check and keep them")
    screen.page.get_by_text("2 of 2 parties have shared").wait_for()
    screen.look("analyst-shares")
    screen.click("Next: align and train", "link")
    screen.page.get_by_label("Seconds").fill("3")
    screen.look("analyst-integrate")
    screen.click("Align and train")
    screen.page.wait_for_url("**/model")
    screen.look("analyst-card")
    screen.page.goto(f"{screen.origin}/export")
    screen.click("Write a file for each party")
    screen.page.get_by_text("south alone").wait_for()
    assert "datacollab remote push" in screen.look("analyst-export")
    play.run("remote", "push", folder=ANALYST)


def predicts(screen, play, party):
    play.run("remote", "pull", folder=party)
    screen.page.goto(f"{screen.origin}/model")
    assert screen.page.locator("#inbox").input_value() == f"{party}.dcmodel"
    screen.click("Install it")
    screen.page.get_by_text("A model is installed.").wait_for()
    screen.look(f"{party}-model")
    screen.page.goto(f"{screen.origin}/predict")
    screen.page.locator("#path").fill(str(play.root / "tables" / "new.csv"))
    screen.click("Predict")
    link = screen.page.get_by_role("link", name="Download")
    link.wait_for()
    screen.look(f"{party}-predict")
    with screen.page.expect_download() as download:
        link.click()
    play.run("party", "predict", "tables/new.csv", "-o", f"{party}.csv", folder=party)
    by_page, by_command = pd.read_csv(download.value.path()), pd.read_csv(play.root / f"{party}.csv")
    pd.testing.assert_frame_equal(by_page, by_command)
    truth = pd.read_csv(play.root / "tables" / "new.csv")["digit"]
    # Ten digits: by chance a tenth is right.
    assert (by_page["prediction"] == truth).mean() > 0.6


@contextmanager
def screens(pictures):
    with sync_api.sync_playwright() as play:
        # The sandbox of the browser needs rights that a container does not give.
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield lambda: Screen(browser, pictures)
        browser.close()


def test_from_invitation_to_predictions(tmp_path):
    pictures = os.environ.get("DATACOLLAB_PICTURES")
    if pictures is not None:
        pictures = Path(pictures)
        pictures.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        play = Play(tmp_path, stack)
        play.run("keys", "new", *PARTIES, ANALYST)
        play.run("hub", "allow", "north/public.key", "--data", "hub")
        url = play.hub()
        screen = stack.enter_context(screens(pictures))

        def at_the_hub(name, words):
            play.dashboards += 1
            link = json.loads(play.run("remote", "dashboard", "--json", folder=name))["link"]
            visitor = screen().open(link)
            visitor.click("Sign in")
            visitor.click("digits", "link")
            for place in ("Files", *(("Agreement",) if play.is_agreed else ()), "Log", "Overview"):
                visitor.click(place, "link")
                told = visitor.look(f"hub-{play.dashboards}-{name}-{place.lower()}")
            visitor.check()
            assert words in told

        play.dashboards, play.is_agreed = 0, False
        steps = agreed(play, url)
        next(steps)
        at_the_hub("north", "datacollab remote requests")
        next(steps)
        play.is_agreed = True
        at_the_hub("south", "0 of 2")
        desks = {party: screen().open(play.desk(party)) for party in PARTIES}
        for party, desk in desks.items():
            joins(desk, play, party)
        shares(desks["north"], play, "north")
        at_the_hub("south", "1 of 2")
        shares(desks["south"], play, "south")
        desks[ANALYST] = screen().open(play.desk(ANALYST))
        trains(desks[ANALYST], play)
        at_the_hub(ANALYST, "2 of 2")
        for party in PARTIES:
            predicts(desks[party], play, party)
        at_the_hub("north", "Nothing lies here for a party")
        for desk in desks.values():
            desk.check()
        holds_nothing_of_anybody(play)


def holds_nothing_of_anybody(play):
    """The hub's files, byte by byte, and what is packed in them, hold no row, anchor or map."""
    secrets = {}
    for party in PARTIES:
        table = pd.read_csv(play.root / "tables" / f"{party}.csv")
        features = table.drop(columns="digit").to_numpy(float)
        folder = PartyFolder(play.root / party)
        mapping = load_party(folder).party
        secrets[f"rows of {party}"] = [*pieces(features), *lines(play.root / "tables" / f"{party}.csv")]
        secrets[f"mapped rows of {party}"] = pieces(mapping.obfuscate(features))
        secrets[f"anchor of {party}"] = pieces(folder.anchor.rows)
        secrets[f"map of {party}"] = pieces(mapping.obfuscate(np.eye(features.shape[1])))
    held = [path.read_bytes() for path in sorted((play.root / "hub").rglob("*")) if path.is_file()]
    assert len(held) > 8
    assert found(secrets, held) == set()
    # The search finds what is there.
    for what, parts in secrets.items():
        assert len(parts) > 20
        assert found({what: parts}, [b"..." + parts[0] + b"..."]) == {what}


def found(secrets, held):
    """The names of what is somewhere in the files: each place is looked up among all pieces."""
    names = {}
    for what, parts in secrets.items():
        for part in parts:
            names.setdefault(len(part), {})[part] = what
    return {
        of_length[data[at : at + length]]
        for length, of_length in names.items()
        for data in held
        for at in range(len(data))
        if data[at : at + length] in of_length
    }


def pieces(values):
    """Four numbers in a row that are not all alike, as machines write them."""
    values = np.asarray(values, float).ravel()
    fours = [four for four in values[: len(values) // 4 * 4].reshape(-1, 4) if len(set(four)) > 2]
    return [four.astype(kind).tobytes() for four in fours for kind in ("<f8", "<f4", ">f8")]


def lines(path):
    """The beginning of each row, as the file has it."""
    return [line.encode()[:32] for line in path.read_text().splitlines()[1:]]
