import pytest

from party_world import new_world


@pytest.fixture(scope="session")
def joined_once(tmp_path_factory):
    made = new_world(tmp_path_factory.mktemp("joined"))
    made.join()
    return made


@pytest.fixture(scope="session", autouse=True)
def one_loop_of_events():
    """All browsers share a loop: to begin one for each request, with its thread, costs as much as to answer."""
    from anyio.from_thread import start_blocking_portal
    from desk_world import LOOPS

    with start_blocking_portal("asyncio") as loop:
        LOOPS.append(loop)
        yield
        LOOPS.clear()


@pytest.fixture
def world(joined_once, tmp_path):
    """Of which the first party has joined."""
    return joined_once.copied(tmp_path)


@pytest.fixture
def place(world):
    """The first party's desk."""
    from desk_world import opened

    return opened(world.root / "a")
