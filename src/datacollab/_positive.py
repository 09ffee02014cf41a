"""Which of two classes is sought, where their names say it."""

from collections.abc import Iterable
from typing import Any

NO_AND_YES = (("0", "1"), ("no", "yes"), ("No", "Yes"), ("false", "true"), ("False", "True"), ("FALSE", "TRUE"))
"""Pairs with an obvious meaning."""


def positive_class(classes: Iterable[Any]) -> Any:
    """Return the class that means yes, of two that mean no and yes; None if their names do not say it."""
    # 0.0 and 1.0 are 0 and 1, as numbers of a table with gaps are read.
    found = {str(each).removesuffix(".0"): each for each in classes}
    return next((found[yes] for no, yes in NO_AND_YES if found.keys() == {no, yes}), None)
