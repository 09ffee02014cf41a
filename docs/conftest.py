"""Light choices and explanations for the examples on pages."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _light(light_choices, request):
    if request.path.name == "explanations.md":
        request.getfixturevalue("uncompiled_shap")
