"""Light choices for the examples on pages."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _light(light_choices):
    pass
