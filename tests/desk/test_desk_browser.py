"""The desk in a real browser: without JavaScript, on a telephone, by keyboard, and nothing asked of anybody else."""

import shutil

import pytest
from desk_world import at_loopback

from datacollab.desk.web import door_page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium was found on this machine")]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        # The sandbox of the browser needs rights that a container does not give.
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(world, browser):
    with at_loopback(world.root / "a") as session:
        context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
        page = context.new_page()
        page.set_default_timeout(180_000)
        page.asked = []
        page.refused = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.refused.append(message.text))
        page.goto(session.link)
        page.wait_for_url(f"{session.origin}/")
        page.origin = session.origin
        yield page
        context.close()


def fits(page):
    """Whether nothing sticks out of the screen to the side, once its style is there."""
    page.wait_for_load_state()
    return page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_page_on_the_disk_opens_the_desk_and_leaves_no_secret_behind(world, browser, has_scripts):
    with at_loopback(world.root / "a") as session:
        context = browser.new_context(java_script_enabled=has_scripts)
        page = context.new_page()
        asked = []
        page.on("request", lambda request: asked.append((request.url, request.headers)))
        secret = session.secret
        with door_page(session, world.root / "a") as door:
            page.goto(door.as_uri())
            if not has_scripts:
                page.get_by_role("button", name="Open the desk").click()
            page.wait_for_url(f"{session.origin}/")
            assert page.locator("h1").inner_text() == "Party a of project wards"
            assert not door.exists()
        assert secret not in str(asked)
        context.close()


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_page_is_wider_than_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    for path in ("/", "/table", "/outbox", "/model", "/predict", "/nowhere"):
        page.goto(page.origin + path)
        assert fits(page), path


def test_a_printed_page_holds_no_record_of_the_party(world, page):
    table = world.root / "a.csv"
    page.goto(page.origin + "/table")
    page.get_by_label("Path on this machine").fill(str(table))
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("link", name="Next: what would leave").click()
    page.locator("summary", has_text="More options").click()
    page.locator("#no_audit").check()
    page.get_by_role("button", name="Look at what would leave").click()
    record = page.get_by_text("Row 1 of your table")
    record.wait_for()
    page.wait_for_load_state()
    assert record.is_visible()
    page.emulate_media(media="print")
    assert not record.is_visible()
    assert page.get_by_text("What does not leave").is_visible()


def test_the_first_stop_of_the_keyboard_leads_to_the_page(page):
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")


def test_a_page_of_elsewhere_cannot_send_a_form(world, page):
    """The browser sends no cookie with a form of another site, and the desk knows the form by its origin besides."""
    context = page.context.browser.new_context(storage_state=page.context.storage_state())
    other = context.new_page()
    other.set_content(f'<form method="post" action="{page.origin}/wrong"><button>Win</button></form>')
    other.get_by_role("button").click()
    assert other.locator("body").inner_text().startswith(("This form", "This desk is open"))
    context.close()
