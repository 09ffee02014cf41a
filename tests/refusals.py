"""What tests of refusals with a code have in common."""

import pytest

from datacollab.errors import ExchangeError


def refused_with(code, match=None):
    """Context of a refusal with this code, and words of its message where they are given."""
    return pytest.raises(ExchangeError, match=match, check=lambda error: error.code == code)
