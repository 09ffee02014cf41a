"""The documentation site, built as `make docs` does but for running the examples, which have tests of their own.

Pages are whole in themselves: opened from a folder, they ask nothing of any other machine.
"""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import typer

from datacollab.cli import app
from playing import commands_below
from rooms import ROOMS
from test_public_names import PUBLIC
from test_public_names import ROOMS as PUBLIC_ROOMS

pytest.importorskip("sphinx", reason="sphinx is not installed")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).parents[2]
PAGES = ("index", "guide", "research", "error-codes", "api/datacollab.KTI", "commands/party", "gallery/index")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LOADED = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src", "object": "data"}
WRITTEN_BY_THE_BUILD = shutil.ignore_patterns("api", "commands", "gallery", "__pycache__")
pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """What a page has: anchors, links, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded, self.styles = {"", "top"}, [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs[name] for name in ("id", "name") if attrs.get(name)}
        self.styles.append(attrs.get("style") or "")
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        if attrs.get(LOADED.get(tag)) and attrs.get("rel") not in {"canonical", "next", "prev", "search"}:
            self.loaded.append(attrs[LOADED[tag]])


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site and what the build said, from a copy of the sources as a fresh clone has them."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=WRITTEN_BY_THE_BUILD)
    for path in [*ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
        shutil.copy(path, folder)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0", "docs", "site"]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-4000:]
    return folder / "site"


@pytest.fixture(scope="module")
def pages(built):
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(built.rglob("*.html"))}


def test_links_of_the_site_are_whole(built, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, fragment = link.partition("#")
            target = (path.parent / unquote(name.partition("?")[0])).resolve() if name else path
            if target.suffix == ".html" and target in pages:
                if unquote(fragment) not in pages[target].anchors:
                    broken.append((path.relative_to(built), link))
            elif not target.is_file():
                broken.append((path.relative_to(built), link))
    assert broken == []


def test_links_to_the_repository_name_what_it_has(pages):
    for page in pages.values():
        for link in page.links:
            found = re.match(r"https://github\.com/datacollab/datacollab/(?:blob|tree)/main/([^#]+)", link)
            assert found is None or (ROOT / found[1]).exists(), link


def test_nothing_is_loaded_from_elsewhere(built, pages):
    for path, page in pages.items():
        for target in page.loaded:
            assert not re.match(r"(?!data:)[a-z]+:|//", target), (path, target)
        for style in page.styles:
            assert not re.search(r"url\(['\"]?(?:https?:)?//", style), (path, style)
    for path in built.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", text), path


def inventory(built):
    """Names and addresses of what can be linked to, by kind."""
    _, _, _, _, packed = (built / "objects.inv").read_bytes().split(b"\n", 4)
    found = {}
    for line in zlib.decompress(packed).decode().splitlines():
        name, kind, _, where, _ = re.fullmatch(r"(.+?) (\S+) (-?\d+) (\S*) (.*)", line).groups()
        found.setdefault(kind, {})[name] = where
    return found


def test_every_public_name_has_a_page(built):
    names = {name for kind, found in inventory(built).items() if kind.startswith("py:") for name in found}
    wanted = {f"datacollab.{name}" for name in PUBLIC if name != "__version__"}
    # Users import the names of `own` from `party`, which have their pages there.
    for room in {*PUBLIC_ROOMS, "errors", "testing"} - {"own"}:
        assert room in ROOMS
        module = importlib.import_module(f"datacollab.{room}")
        wanted |= {f"datacollab.{room}.{name}" for name in module.__all__}
    assert wanted <= names


def test_every_command_option_and_code_can_be_linked_to(built):
    found = inventory(built)
    page = (ROOT / "docs" / "error-codes.md").read_text(encoding="utf-8")
    codes = set(re.findall(r"^\| `([A-Z_]+)` \| \d+", page, flags=re.MULTILINE))
    assert len(codes) > 20
    assert codes <= set(found["std:error"])

    for names, command in list(commands_below(typer.main.get_command(app)))[1:]:
        path = "-".join(("datacollab", *names))
        assert path in found["std:label"]
        for parameter in command.params:
            for spelt in parameter.opts if parameter.param_type_name == "option" else ():
                assert f"{path}.{spelt}" in found["std:cmdoption"]


def test_the_page_for_researchers_leads_into_the_code(pages, built):
    links = pages[built / "research.html"].links
    assert "api/datacollab.KTI.html#datacollab.KTI" in links
    assert any(link.endswith("src/datacollab/analyst/_solvers.py") for link in links)


def test_a_search_finds_methods_by_both_of_their_names(built):
    text = (built / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    for method, name in (("KTI", "kti"), ("KTI", "nki"), ("LTI", "lti"), ("LTI", "lki")):
        told = [index[kind].get(name, []) for kind in ("terms", "titleterms")]  # a page, or a list
        found = {index["docnames"][page] for each in told for page in (each if isinstance(each, list) else [each])}
        assert {f"api/datacollab.{method}", "glossary", "research"} <= found, name


def test_every_example_can_be_downloaded_as_a_notebook(built):
    examples = sorted((ROOT / "examples").glob("*.py"))
    notebooks = {path.stem for path in (built / "_downloads").rglob("*.ipynb")}
    assert {path.stem for path in examples} <= notebooks


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium was found on this machine")
def test_in_a_browser_no_request_leaves_the_folder(built):
    asked, complaints = [], []
    with sync_api.sync_playwright() as play:
        # The sandbox of the browser needs rights that a container does not give.
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.set_default_timeout(180_000)
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            for name in PAGES:
                page.goto((built / f"{name}.html").as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
        page.goto((built / "search.html").as_uri() + "?q=SCHEMA_MISSING_ENTRY")
        page.locator("#search-results a[href*='error-codes.html#SCHEMA_MISSING_ENTRY']").first.wait_for()
        shown = set()
        for mode in ("light", "dark"):
            page.emulate_media(color_scheme=mode)
            page.goto((built / "index.html").as_uri())
            shown.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(shown) == 2
        browser.close()
    assert complaints == []
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
