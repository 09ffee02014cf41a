"""The page as a browser shows and prints it."""

import re
import shutil

import pytest

from audit_example import audit_result

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium was found on this machine"),
]


@pytest.fixture
def page(tmp_path):
    audit_result().to_html(tmp_path / "audit.html")
    with sync_api.sync_playwright() as play:
        # The sandbox of the browser needs rights that a container does not give.
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto((tmp_path / "audit.html").as_uri())
        yield page
        browser.close()


def test_a_telephone_shows_all_but_the_findings_without_scrolling_sideways(page):
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = page.evaluate("[...document.querySelectorAll('.wide')].map(each => each.scrollWidth > each.clientWidth)")
    kinds = page.evaluate("[...document.querySelectorAll('.wide table')].map(each => each.className)")
    assert kinds == ["stacked named", "findings", "findings"]
    assert wide[:2] == [False, True]


def test_the_essentials_are_printed_on_one_sheet(page):
    page.evaluate("document.querySelector('.appendix').remove()")
    assert len(re.findall(rb"/Type /Page\b(?!s)", page.pdf(prefer_css_page_size=True))) == 1
