"""The hub's pages in a real browser: no script, any width, light and dark, and nothing asked of anybody else."""

import shutil
from itertools import pairwise

import pytest
from served_pages import served

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium was found on this machine")]
WIDTHS = (390, 768, 1280)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    with served(tmp_path_factory.mktemp("hub")) as found:
        yield found


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as play:
        # The sandbox of the browser needs rights that a container does not give.
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def new_page(chromium):
    page = chromium.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844}).new_page()
    page.set_default_timeout(180_000)
    page.asked, page.said = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda message: page.said.append(message.text))
    return page


def link(hub, who):
    world, url, _ = hub
    return f"{url}/session/{world.link(who).rpartition('/')[2]}"


@pytest.fixture
def page(hub, chromium):
    """The owner's, at their projects."""
    page = new_page(chromium)
    page.goto(link(hub, "owner"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
    yield page
    page.context.close()


def test_every_page_fits_every_width_and_says_nothing_to_the_console(hub, page):
    _, url, paths = hub
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for name, path in paths.items():
            page.goto(url + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            assert page.locator("main h1").count() == 1, name
    assert {each.startswith(url) for each in page.asked} == {True}
    # Browsers say by themselves that a page was not found; that one was asked for.
    assert [each for each in page.said if "404" not in each] == []
    assert len(page.said) == len(WIDTHS)


def test_pages_are_built_so_that_they_can_be_read_out(hub, page):
    _, url, paths = hub
    for path in paths.values():
        page.goto(url + path)
        assert page.locator("html[lang=en] > body > header").count() == 1
        for landmark in ("main", "body > footer"):
            assert page.locator(landmark).count() == 1, path
        levels = [int(each.evaluate("node => node.tagName[1]")) for each in page.locator("h1, h2, h3").all()]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels)), (path, levels)
        for table in page.locator("table").all():
            assert table.locator("caption").count() == 1, path
            assert table.locator("th:not([scope])").count() == 0, path
        for field in page.locator("select, input:not([type=hidden])").all():
            assert page.locator(f"label[for={field.get_attribute('id')}]").count() == 1, path
        names = [each.get_attribute("aria-label") for each in page.locator("nav, [role=region]").all()]
        assert None not in names
        assert len(set(names)) == len(names), path


def test_the_keyboard_finds_the_page_and_sees_where_it_is(page):
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"


def test_in_and_out_with_a_browser(hub, chromium):
    _, url, paths = hub
    page, address = new_page(chromium), link(hub, "north")
    page.goto(url + paths["overview"])
    assert page.locator("h1").inner_text() == "Sign in"
    page.goto(address)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.goto(address)
    assert "INVITATION_INVALID" in page.locator("main").inner_text()
    page.goto(url)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="You are signed out").wait_for()
    assert page.context.cookies() == []
    page.goto(url + paths["overview"])
    assert page.locator("h1").inner_text() == "Sign in"
    page.context.close()


def test_a_page_of_elsewhere_cannot_send_a_form(hub, page):
    _, url, _ = hub
    other = page.context.new_page()
    other.set_content(f'<form method="post" action="{url}/sign-out"><button>Win</button></form>')
    other.get_by_role("button").click()
    other.get_by_text("Sign in").or_(other.get_by_text("NOT_ALLOWED")).first.wait_for()
    page.goto(url)
    assert page.locator("h1").inner_text() == "Your projects"


def test_on_paper_there_are_no_buttons(hub, page):
    _, url, paths = hub
    page.goto(url + paths["overview"])
    page.emulate_media(media="print")
    assert not page.get_by_role("button", name="Sign out").is_visible()
    assert not page.locator("nav").first.is_visible()
    assert page.get_by_text("Last day for shares").is_visible()
