"""A regression by rounds through a hub in this process, by commands."""

import time

import httpx
import pytest

from datacollab.by_sums.rounds import ROUND_FILE
from datacollab.steps.analyst import STUDY_FILES
from hub_world import URL, World
from playing import done, told
from rounds_world import NAMES, follow, new_rounds_world, push, share_first, status

pytest.importorskip("fastapi", reason="the extra hub is not installed")
from datacollab_hub.store import allow_key


def lead_to(hub, monkeypatch):
    """Let commands reach a hub in this process."""
    client = httpx.Client

    def answer(request):
        headers = dict(request.headers)
        said = hub.client.request(request.method, str(request.url), headers=headers, content=request.content)
        return httpx.Response(said.status_code, headers=dict(said.headers), content=said.content)

    transport = httpx.MockTransport(answer)
    monkeypatch.setattr("httpx.Client", lambda **options: client(**{**options, "transport": transport}))


@pytest.mark.nightly
def test_two_rounds_go_through_a_hub(tmp_path, monkeypatch):
    world = new_rounds_world(tmp_path)
    owner = world.root / NAMES[0]
    with World(tmp_path / "hub") as hub:
        hub.now = time.time()
        with hub.store.writing() as connection:
            allow_key(connection, world.project.owner, hub.now)
        lead_to(hub, monkeypatch)
        for name in (*NAMES, "analyst"):
            done("remote", "add", "hub", URL, "-C", world.root / name)
        told("remote", "open", "wards", "-C", owner)
        assert push(world, NAMES[0]) == {"project.toml": "agreement"}
        for name in NAMES:
            assert share_first(world, name)["refused"] == {}
        assert status(world, "analyst") == (sorted(NAMES), [], 0)
        follow(world, "analyst", ["sums"] * 3)
        # By another way than the hub the request does not open it for an answer.
        request = world.root / "analyst" / "outbox" / ROUND_FILE
        done("party", "share", world.table("north"), "--round", request, "-C", world.root / "north")
        (refusal,) = told("remote", "push", "-C", world.root / "north", code=14)["refused"].values()
        assert refusal["code"] == "ALREADY_SHARED"
        assert push(world, "analyst") == {ROUND_FILE: "round"}
        assert status(world, "south") == ([], sorted(NAMES), 1)
        for name in NAMES:
            follow(world, name, ["round"])
            assert push(world, name) == {f"{name}.dcsum": "sums"}
        assert status(world, "analyst") == (sorted(NAMES), [], 1)
        follow(world, "analyst", ["sums"] * 3)
        assert (world.root / "analyst" / STUDY_FILES[0]).exists()
        # All was given that the hub's log names, and nothing comes again.
        for name in (*NAMES, "analyst"):
            assert told("remote", "pull", "-C", world.root / name)["came"] == {}
