"""A logistic regression by rounds: three parties and an analyst, and how they play it over a remote by commands."""

import shlex

from playing import done, told
from sums_world import PARTIES, make_rows, new_sums_world

NAMES = PARTIES[:3]
LOGISTIC = {"statistics": ("logistic regression",), "rounds": 2}


def new_rounds_world(root, sharing=LOGISTIC, **changes):
    """All have joined, and nobody has shared."""
    world = new_sums_world(root, parties=NAMES, sharing=sharing, **changes)
    for place, name in enumerate(NAMES):
        make_rows(place).to_csv(world.table(name), index=False)
    return world


def share_first(world, name):
    """A party shares in the first round, and pushes; what the push says."""
    heard = [word for each in world.heard(name) for word in ("--heard", each)]
    done("party", "share", world.table(name), "--approve", *heard, "-C", world.root / name)
    return told("remote", "push", "-C", world.root / name)


def follow(world, name, kinds):
    """Pull what came, which has to be of these kinds, and run the commands that the pull names."""
    said = told("remote", "pull", "-C", world.root / name)
    assert list(said["came"].values()) == kinds
    for line in said["next"]:
        program, *words = shlex.split(line)
        assert program == "datacollab"
        done(*(world.table(name) if word == "TABLE" else word for word in words))
    return said


def push(world, name):
    """What a push sends, by its name."""
    said = told("remote", "push", "-C", world.root / name)
    assert not said["refused"], said
    return {path.rpartition("/")[2]: kind for path, kind in said["sent"].items()}


def status(world, name):
    """Who has shared, who has not, and how many further rounds were asked for."""
    said = told("remote", "status", "-C", world.root / name)
    return sorted(said["shared"]), sorted(said["missing"]), said["rounds"]
