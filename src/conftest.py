"""Light choices for the examples in docstrings."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _light(light_choices):
    pass
