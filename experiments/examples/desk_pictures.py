"""
Pictures of the desk's pages
============================

``python experiments/examples/desk_pictures.py [FOLDER] [--width 390]``.

Three hospitals and an analyst go from empty folders to predictions by pages alone, in a real browser. Takes chromium
and the package playwright. Without a folder, the pictures of the documentation are made anew.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from datacollab.bundle import PublicKey
from datacollab.cli._command import WorkFolder
from datacollab.cli._desk_commands import desk_app
from datacollab.desk.web import Session, bind_socket

DOCS = Path(__file__).parents[2] / "docs" / "images"
SHOWN = {
    "keys": "keys",
    "join-fingerprints": "join",
    "sums-question": "share",
    "model-done": "install",
    "predict-done": "predict",
}
"""Pictures of the documentation, by the names of what is taken."""
_WIDTH = 1280
_HEIGHT = 800
_PATIENCE = 120_000
PARTIES = ("north", "south", "east")


def hospital(n_rows: int, seed: int) -> pd.DataFrame:
    """Make a table with ten columns of numbers, two of categories, gaps, and 14 % of ``died`` that are yes."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, 10)) @ np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))[0]
    table = pd.DataFrame({f"lab_{i}": np.round(60 + 12 * numbers[:, i], 1) for i in range(10)})
    table["ward"] = rng.choice(["a", "b", "c", "d"], n_rows)
    table["sex"] = rng.choice(["f", "m"], n_rows)
    risk = numbers[:, 0] + 0.7 * numbers[:, 1] ** 2 + (table["ward"] == "d") + rng.logistic(size=n_rows)
    table["died"] = np.where(risk > np.quantile(risk, 0.86), "yes", "no")
    table.loc[rng.random(n_rows) < 0.02, "lab_3"] = np.nan
    return table


@contextmanager
def _served(folder: Path) -> Iterator[Session]:
    import uvicorn

    bound, host = bind_socket()
    session = Session(host)
    app = desk_app(WorkFolder(folder), session)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    yield session
    server.should_exit = True
    thread.join(20)
    bound.close()


class _Hands:
    """A browser that is at one folder's desk, and what takes the pictures."""

    def __init__(self, browser: Any, session: Session, output: Path, width: int, prefix: str = "") -> None:
        context = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": _HEIGHT})
        self.page = context.new_page()
        self.origin = session.origin
        self.output = output
        self.prefix = prefix
        self.page.set_default_timeout(_PATIENCE)
        self.page.goto(session.link)
        self.page.wait_for_url(lambda url: "/enter/" not in url)

    def at(self, path: str) -> None:
        self.page.goto(self.origin + path)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()
        while self.page.locator("h1").first.inner_text() == "At work":
            # The page of the work looks again by itself.
            time.sleep(0.5)

    def write(self, **fields: str) -> None:
        for name, entry in fields.items():
            self.page.locator(f"[name={name}]").first.fill(entry)

    def give(self, file: Path, name: str = "upload") -> None:
        self.page.locator(f"input[name={name}]").set_input_files(str(file))

    def take(self, name: str) -> None:
        self.page.wait_for_load_state()
        wide = self.page.evaluate("document.documentElement.scrollWidth") - self.page.viewport_size["width"]
        print(f"{self.prefix}{name}{f': {wide} pixels too wide' if wide > 0 else ''}", flush=True)
        self.page.screenshot(path=self.output / f"{self.prefix}{name}.png", full_page=True)


def play(root: Path, output: Path, width: int) -> None:
    """Play the exchange in ``root``, with a picture of every page in ``output``."""
    from playwright.sync_api import sync_playwright

    for place, name in enumerate((*PARTIES, "public", "new")):
        hospital(500 if name == "public" else 300, place).to_csv(root / f"{name}.csv", index=False)
    # Paths are relative, so that no page shows where the exchange was played.
    folders = {name: Path(name) for name in (*PARTIES, "analyst")}
    with chdir(root), sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        hands: dict[str, _Hands] = {}
        for name, folder in folders.items():
            folder.mkdir()
            prefix = {"analyst": "analyst-", "north": "owner-"}.get(name, "")
            hands[name] = _Hands(browser, stack.enter_context(_served(folder)), output, width, prefix)
        _make_keys(hands)
        _draft_project(hands["north"], folders)
        _join_all(hands, folders)
        for name in PARTIES:
            _share(hands[name], name, folders)
        hands["south"].take("outbox")
        _integrate(hands["analyst"], folders)
        _predict(hands["south"], folders)
        browser.close()


def _make_keys(hands: dict[str, _Hands]) -> None:
    hands["south"].take("empty")
    for each in hands.values():
        each.at("/keys")
        each.press("Make keys")
    hands["south"].take("keys")


def _draft_project(owner: _Hands, folders: dict[str, Path]) -> None:
    """Add the members, draft and sign the project, and make its anchor."""
    owner.at("/project")
    owner.take("project-empty")
    for name, folder in folders.items():
        owner.at("/project")
        if (details := owner.page.locator("details").first).get_attribute("open") is None:
            details.locator("summary").first.click()
        owner.page.locator("[name=role]").select_option("analyst" if name == "analyst" else "party")
        owner.write(member="" if name == "analyst" else name)
        owner.give(folder / "public.key", "member_upload")
        owner.press("Add")
    owner.page.locator("form[action='/project'] [name=name]").fill("heart")
    owner.write(target="died", purpose="Who needs a second look?")
    owner.page.locator("form[action='/project'] [name=path]").fill("public.csv")
    owner.take("project-members")
    owner.press("Draft")
    owner.take("project-drafted")
    owner.press("Sign")
    owner.take("project-signed")
    owner.page.get_by_role("link", name="Next: make the anchor").click()
    owner.press("Seal")
    owner.take("anchor")


def _join_all(hands: dict[str, _Hands], folders: dict[str, Path]) -> None:
    made = folders["north"] / "owner"
    hands["south"].at("/join")
    hands["south"].take("join")
    for name, each in hands.items():
        each.at("/join")
        each.give(made / "project.toml")
        if name != "analyst":
            each.give(made / "anchor.dcanchor", "anchor_upload")
        if name == "north":
            each.write(path="", anchor_path="")
        each.press("Look at it")
        if name == "south":
            each.take("join-fingerprints")
        each.page.get_by_label("I have compared").check()
        each.press("Join")
    hands["south"].take("home")
    hands["analyst"].take("home")


def _share(party: _Hands, name: str, folders: dict[str, Path]) -> None:
    """Choose the table and let its sums leave; pictures are of one party."""
    is_shown = name == "south"
    party.at("/table")
    if is_shown:
        party.take("table")
    party.write(path=f"{name}.csv")
    party.press("Look at it")
    if is_shown:
        party.take("wrong")
    party.at("/sums")
    if is_shown:
        party.take("sums")
    party.press("Look at what would leave")
    if is_shown:
        party.take("sums-question")
    keys = [PublicKey.load(folders[other] / "public.key") for other in PARTIES if other != name]
    party.write(heard="\n".join(key.fingerprint for key in keys[:2]), name="J. Doe")
    party.press("It may leave")


def _integrate(analyst: _Hands, folders: dict[str, Path]) -> None:
    analyst.at("/shares")
    analyst.take("shares")
    files = [str(folders[name] / "outbox" / f"{name}.dcsum") for name in PARTIES]
    analyst.page.locator("input[name=upload]").set_input_files(files)
    analyst.press("Check and keep them")
    analyst.take("shares-taken")
    analyst.at("/integrate")
    analyst.take("integrate")
    analyst.press("Add up, and make the model")
    analyst.take("model")
    analyst.at("/export")
    analyst.press("Write a file for each party")
    analyst.take("export")


def _predict(party: _Hands, folders: dict[str, Path]) -> None:
    party.at("/model")
    party.take("model")
    party.give(folders["analyst"] / "outbox" / "south.dcmodel")
    party.press("Install it")
    party.take("model-done")
    for step, button in (("predict", "Predict"), ("evaluate", "Evaluate")):
        party.at(f"/{step}")
        if step == "predict":
            party.take(step)
        party.write(path="new.csv")
        party.press(button)
        party.take("predict-done" if step == "predict" else step)
    for path, name in (("/", "home-end"), ("/nowhere", "nowhere")):
        party.at(path)
        party.take(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, help="folder for pictures of all pages")
    parser.add_argument("--width", type=int, default=_WIDTH, help="pixels of the window")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        output = (given.output or Path(made) / "pictures").absolute()
        output.mkdir(parents=True, exist_ok=True)
        (root := Path(made) / "exchange").mkdir()
        play(root, output, given.width)
        if given.output is None:
            _documented(output)
    return 0


def _documented(pictures: Path) -> None:
    """Write the documentation's pictures: the top of a page, in few colours."""
    from PIL import Image, ImageChops

    for name, shown in SHOWN.items():
        image = Image.open(pictures / f"{name}.png").convert("RGB")
        *_, end = ImageChops.invert(image).getbbox() or (image.height,)
        height = min(end + 20, _HEIGHT)
        image = image.crop((0, 0, image.width, height)).resize((960, height * 960 // image.width))
        image.quantize(32).save(DOCS / f"desk-{shown}.png", optimize=True)


if __name__ == "__main__":
    raise SystemExit(main())
