import pytest

from party_world import new_world


@pytest.fixture(scope="session")
def joined_once(tmp_path_factory):
    made = new_world(tmp_path_factory.mktemp("joined"))
    made.join()
    return made


@pytest.fixture
def world(joined_once, tmp_path):
    """Of which the first party has joined."""
    return joined_once.copied(tmp_path)


@pytest.fixture
def place(world):
    """The first party's desk."""
    from desk_world import opened

    return opened(world.root / "a")
