"""What tests of refusals with a code have in common."""

import pytest

from datacollab.errors import ExchangeError


def each(**values):
    """Changes of one entry each: for every name, to every one of its values."""
    return [{name: value} for name, given in values.items() for value in given]


def refused_with(code, match=None):
    """Context of a refusal with this code, and words of its message where they are given."""
    return pytest.raises(ExchangeError, match=match, check=lambda error: error.code == code)
