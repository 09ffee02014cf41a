import pytest

from party_world import new_world


@pytest.fixture
def world(tmp_path):
    """Of which the first party has joined."""
    made = new_world(tmp_path)
    made.join()
    return made


@pytest.fixture
def place(world):
    """The first party's desk."""
    from desk_world import opened

    return opened(world.root / "a")
