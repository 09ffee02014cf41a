import dataclasses

import numpy as np
import pytest

from datacollab import Share
from datacollab.errors import ShareError


def arrays(**changes):
    fields = {
        "party": "a",
        "representation": np.ones((4, 2)),
        "anchor_representation": np.ones((3, 2)),
        "target": np.array([0, 1, 0, 1]),
        "anchor_target": np.array([0, 1, 0]),
    }
    return {**fields, **changes}


def test_fields_are_frozen_copies():
    given = arrays()
    share = Share(**given)
    given["representation"][0, 0] = 7.0
    assert share.representation[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        share.representation[0, 0] = 7.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        share.target = None
    held = [getattr(share, field.name) for field in dataclasses.fields(share)]
    assert share.nbytes == sum(array.nbytes for array in held if isinstance(array, np.ndarray))


def test_nothing_but_the_documented_fields_crosses():
    names = {field.name for field in dataclasses.fields(Share)}
    arrays_sent = {"representation", "anchor_representation", "target", "anchor_target"}
    assert names == {"party", "one_to_one", *arrays_sent}
    assert set(vars(Share(**arrays()))) == names


def test_repr_shows_shapes_only():
    text = repr(Share(**arrays(representation=np.full((4, 2), 0.123456))))
    assert "0.123456" not in text
    assert "representation=(4, 2)" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"anchor_representation": np.ones((3, 5))}, r"rows have 2 columns but its anchor has 5"),
        ({"target": np.zeros(3)}, r"target must have one entry per row, shape \(4,\); got \(3,\)"),
        ({"anchor_target": np.zeros((3, 1))}, r"anchor_target must have one entry per row, shape \(3,\); got \(3, 1\)"),
        ({"target": np.array([0.0, np.nan, 0, 1])}, r"target contains NaN, None or infinity"),
        ({"target": np.array(["well", None, "ill", "ill"], dtype=object)}, r"target contains NaN, None or infinity"),
        ({"representation": np.array([[np.inf, 1.0]] * 4)}, r"representation contains NaN or infinity in 4 of 4 rows"),
        ({"anchor_representation": np.ones((0, 2))}, r"anchor representation is empty"),
        ({"representation": [["Smith", "x"]] * 4}, r"representation must be an array of real numbers"),
    ],
)
def test_malformed_shares_are_refused(changes, message):
    with pytest.raises(ShareError, match=f"Party 'a'.*{message}") as caught:
        Share(**arrays(**changes))
    assert "Smith" not in str(caught.value)


@pytest.mark.parametrize("name", ["representation", "anchor_representation"])
@pytest.mark.parametrize("entry", [1.1e30, -1e308])
def test_entries_that_would_drown_everybody_are_refused_by_name(name, entry):
    changed = arrays()
    changed[name] = changed[name].copy()
    changed[name][1, 0] = entry
    with pytest.raises(ShareError, match=r"Party 'a'.*1e\+30") as caught:
        Share(**changed)
    assert "308" not in str(caught.value)
    changed[name][1, 0] = -1e30
    Share(**changed)
