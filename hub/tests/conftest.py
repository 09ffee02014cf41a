"""A hub on SQLite, and on PostgreSQL where its programs are found."""

import secrets

import pytest

from hub_world import World
from postgres_server import find_programs, run_server


@pytest.fixture(scope="session")
def postgres():
    """Address of a server that was started for these tests, and is ended with them."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL's programs are not found: neither in /usr/lib/postgresql nor on PATH")
    with run_server(programs) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """None for the file in the hub's folder, or the address of a schema of a database, which is made sooner."""
    if request.param == "sqlite":
        return None
    import psycopg

    address = request.getfixturevalue("postgres")
    name = f"hub_{secrets.token_hex(8)}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{address}/postgres?options=-csearch_path%3D{name}"


@pytest.fixture
def world(tmp_path, database):
    """A hub with an owner whose key was allowed."""
    with World(tmp_path / "hub", database) as world:
        yield world


@pytest.fixture
def agreed(world):
    """The same with a project and its file."""
    world.open_project()
    world.put_agreement()
    return world
