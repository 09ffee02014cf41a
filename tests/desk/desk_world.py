"""A party's desk over a made-up project, and a browser that was let in."""

import re
import threading
import time
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="the extra 'desk' is not installed")
pytest.importorskip("jinja2", reason="the extra 'desk' is not installed")

from starlette.testclient import TestClient

from datacollab.cli._command import COMMANDS, STEPS, WorkFolder, lines_of
from datacollab.cli._desk_commands import desk_app
from datacollab.desk.analyst import AnalystDesk, analyst_app
from datacollab.desk.party import PartyDesk, party_app
from datacollab.desk.web import Commands, Session, bind_socket

HOST = "127.0.0.1:8123"
LOOPS = []
"""The loop of events in which all browsers ask, once the tests have begun one."""


def browser(app, session, **options):
    """A client that opened the link."""
    client = TestClient(app, base_url=session.origin, **options)
    client.portal = next(iter(LOOPS), None)
    assert "The desk is open." in client.get(session.link).text
    return client


def party_desk(path, **options):
    """A party's desk, with the commands that it runs."""
    return PartyDesk(path, Commands(STEPS | COMMANDS, partial(lines_of, WorkFolder(path))), **options)


def opened(path):
    """A party's desk, its session and a browser that was let in."""
    session = Session(HOST)
    desk = party_desk(path)
    app = party_app(desk, session)
    return SimpleNamespace(desk=desk, session=session, app=app, client=browser(app, session))


def opened_by_analyst(path):
    """An analyst's desk, its session and a browser that was let in."""
    session = Session(HOST)
    desk = AnalystDesk(path)
    return SimpleNamespace(desk=desk, session=session, client=browser(analyst_app(desk, session), session))


def opened_by_anybody(path):
    """The pages of a folder, whoever it is of, its session and a browser that was let in."""
    session = Session(HOST)
    return SimpleNamespace(session=session, client=browser(desk_app(WorkFolder(path), session), session))


def send(place, path, data=None, **options):
    """Fill in a form, as the page has it."""
    return place.client.post(path, data={"token": place.session.token} | (data or {}), **options)


def decide(place, decision, **data):
    """Answer what the page of approval asks at this moment."""
    asked = re.search(r'name="question" value="(\w+)"', place.client.get("/approve").text)
    return send(place, "/approve/decide", {"question": asked[1] if asked else "", "decision": decision} | data)


def finished(place, seconds=60):
    """The page after the work, whatever came of it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = place.client.get("/work")
        if "<h1>At work</h1>" not in answer.text:
            return answer
        time.sleep(0.01)
    raise AssertionError("the work did not end")


def worked(place, path, data=None, *, seconds=60, **options):
    """The words of the page after a form was filled in and its work was done."""
    send(place, path, data, **options)
    return plain(finished(place, seconds))


def plain(answer):
    """The words of a page's main part, in one line."""
    main = re.search(r"<main.*?</main>", answer.text, re.DOTALL)[0]
    words = re.sub(r"<[^>]+>", " ", main)
    return " ".join(words.replace("&#39;", "'").replace("&amp;", "&").replace("&gt;", ">").split())


QUICK_FORM = {"no_audit": "yes", "components": "3"}


@contextmanager
def at_loopback(path):
    """A party's desk that answers on a port of this machine; gives its session."""
    import uvicorn

    bound, host = bind_socket()
    session = Session(host)
    app = party_app(party_desk(path), session)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    yield session
    server.should_exit = True
    thread.join(20)
    bound.close()
