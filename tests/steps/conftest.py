import pytest

from party_world import new_world


@pytest.fixture
def world(tmp_path):
    return new_world(tmp_path)
