"""A hub on SQLite, and on PostgreSQL where its programs are found."""

import secrets

import pytest
from anyio.from_thread import start_blocking_portal
from sqlalchemy import event

from datacollab_hub.store import Store, upgrade
from hub_world import World
from postgres_server import find_programs, run_server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave to the night what PostgreSQL repeats."""
    for item in items:
        given = getattr(item, "callspec", None)
        if given and given.params.get("database") == "postgresql":
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="session")
def postgres():
    """Address of a server that was started for these tests, and is ended with them."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL's programs are not found: neither in /usr/lib/postgresql nor on PATH")
    with run_server(programs) as address:
        yield address


def tell(address, *steps):
    """Say something to a server of PostgreSQL: words, and values for them or None."""
    import psycopg

    with psycopg.connect(address) as connection:
        for words, values in steps:
            connection.execute(words, values or None)


def new_schema(postgres):
    """The address of a schema that was made."""
    name = f"hub_{secrets.token_hex(8)}"
    tell(f"{postgres}/postgres", (f"CREATE SCHEMA {name}", None))
    return f"{postgres}/postgres?options=-csearch_path%3D{name}"


@pytest.fixture(scope="session")
def tables(postgres, tmp_path_factory):
    """What the migrations say to PostgreSQL, to be said again: to run them anew takes longer than most tests."""
    store = Store.located(tmp_path_factory.mktemp("tables"), database=new_schema(postgres))
    said = []
    event.listen(store.engine, "before_cursor_execute", lambda *call: said.append(call[2:4]))
    upgrade(store.engine)
    store.close()
    return [each for each in said if each[0].split()[0] in ("CREATE", "ALTER", "DROP", "INSERT", "UPDATE")]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """None for the file in the hub's folder, or the address of a schema of a database, which is made sooner."""
    return None if request.param == "sqlite" else new_schema(request.getfixturevalue("postgres"))


@pytest.fixture
def world(tmp_path, database, request):
    """A hub with an owner whose key was allowed."""
    if database is not None:
        tell(database, *request.getfixturevalue("tables"))
    with World(tmp_path / "hub", database) as world:
        yield world


@pytest.fixture
def agreed(world):
    """The same with a project and its file."""
    world.open_project()
    world.put_agreement()
    return world


@pytest.fixture(scope="session", autouse=True)
def one_loop_of_events():
    """All clients share a loop: to begin one for each request, with its thread, costs as much as to answer."""
    with start_blocking_portal("asyncio") as World.portal:
        yield


@pytest.fixture(scope="session", autouse=True)
def trust_is_read_once():
    """The system's certificates are read once, and not by each client."""
    from datacollab_hub import remote

    made, default = remote._http._context, []

    def context(httpx, ca):
        if ca is not None:
            return made(httpx, ca)
        if not default:
            default.append(made(httpx, ca))
        return default[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab_hub.remote._http._context", context)
        yield
