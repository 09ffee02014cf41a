"""The form shows the options that were chosen."""

import pytest

from datacollab.desk.party._release import shown_options

OPTIONS = [
    {},
    {"epsilon": 2.0},
    {"preset": "groups"},
    {"preset": "none"},
    {"preset": "none", "fit_on_anchor": True},
    {"fit_on_anchor": True, "group_size": 5},
    {"noise": 1.0, "obfuscator": "kernel-pca", "standardize": False},
    {"group_size": 3, "noise": 0.5, "n_components": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_form_shows_what_was_chosen(options):
    form = shown_options(options)
    assert form["components"] == options.get("n_components", "")
    assert bool(form["no_standardize"]) == (options.get("standardize") is False)
    assert form["epsilon"] == options.get("epsilon", "")
