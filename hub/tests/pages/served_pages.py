"""A hub in the middle of a project, on loopback, for a browser."""

import threading
from contextlib import contextmanager
from datetime import date

import uvicorn

from datacollab.bundle import KeyPair, digest
from datacollab.table import Column
from datacollab_hub.rules import Settings
from datacollab_hub.service import Hub
from datacollab_hub.web import make_app
from hub_process import free_port
from hub_world import World, bundle, make_project

LONG = "Observational_study_of_the_region_with_a_name_that_nobody_can_break_into_lines"
COLUMNS = (
    Column(name="age", kind="number", unit="years", minimum=0, maximum=120),
    Column(name="ward", kind="category", categories=("north", "south", "intensive care"), unknown="other"),
    Column(name="dose", kind="number", unit="mg", minimum=0, maximum=9, missing="fill", fill=2, flag_missing=True),
    *(Column(name=f"laboratory_value_{number}", kind="number", minimum=0, maximum=1) for number in range(8)),
)


def filled(world):
    """Paths of the pages of a project in which everything has happened."""
    world.open_project(f"{LONG} (heart)")
    first = make_project(name="heart", columns=COLUMNS, purpose="Who is at risk after an infarct?\nFor ward rounds.")
    world.put_agreement(first)
    world.now += 86_400
    second = make_project(
        name="heart", columns=COLUMNS[1:], purpose=first.purpose, min_rows=30, deadline=date(2027, 2, 28), revision=2
    )
    world.put_agreement(second)
    world.admit("auditor")
    for who, role in (("other", "party"), ("stranger", "auditor")):
        world.join(who, world.invite(role, f"Newcomer {who}"))
    share = bundle("share", "north", party="north", project=second, size=1_400_000)
    sent = [("owner", "anchor", bundle("anchor", "owner", project=second), None), ("north", "share", share, None)]
    sent += [("south", "share", bundle("share", "south", party="south", project=second), None)]
    sent += [("analyst", "model", bundle("model", "analyst", party="north", project=second), "north")]
    for who, kind, data, to in sent:
        world.now += 600
        assert world.send(who, kind, data, to, piece=4 * 2**20).status_code == 201
    world.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(share)}")
    gone = digest(sent[2][2])
    world.ask("south", "DELETE", f"/v1/projects/{{p}}/files/{gone}")
    for number in range(60):
        world.invite("party", f"guest {number}, {KeyPair.generate().public.fingerprint}")
    at = f"/projects/{world.project}"
    return {
        "projects": "/",
        "overview": at,
        "requests": f"{at}/requests",
        "files": f"{at}/files",
        "file": f"{at}/files/{digest(share)}",
        "gone": f"{at}/files/{gone}",
        "agreement": f"{at}/agreement",
        "earlier": f"{at}/agreement?revision=1",
        "changes": f"{at}/agreement/changes",
        "log": f"{at}/log",
        "log-first": f"{at}/log?after=0",
        "refused": f"{at}/files/{'0' * 64}",
    }


@contextmanager
def served(folder):
    """The filled world, the address at which a browser finds it, and its paths."""
    with World(folder) as world:
        paths = filled(world)
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        app = make_app(Hub(world.store, Settings(url=url, requests_per_second=10_000.0), lambda: world.now))
        server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield world, url, paths
        finally:
            server.should_exit = True
            thread.join()
