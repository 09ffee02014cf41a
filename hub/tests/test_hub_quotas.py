"""What one key can make a hub keep, besides files: projects, and revisions of their project files."""

import pytest

from datacollab.agreement import project_text
from hub_world import KEYS, World, make_project, refused


def padded(revision, size):
    """A project file made large by comments."""
    text = project_text(make_project(revision=revision), KEYS["owner"]).encode()
    return text + b"#" * (size - len(text) - 1) + b"\n"


def test_revisions_of_project_files_have_a_limit_that_all_projects_of_a_key_share(tmp_path, database):
    with World(tmp_path / "hub", database, agreement_bytes=50_000) as world:

        def put(revision):
            return world.ask("owner", "PUT", "/v1/projects/{p}/agreement", padded(revision, 20_000))

        first = world.open_project()
        assert put(1).status_code == 201
        world.open_project("another")
        assert put(1).status_code == 201
        refused(put(2), "QUOTA_EXCEEDED", 413)
        world.project = first
        refused(put(2), "QUOTA_EXCEEDED", 413)
        # What is there may be sent again, and a small file still has room.
        assert put(1).status_code == 200
        assert world.put_agreement(make_project(revision=2)).status_code == 201


@pytest.mark.slow
def test_a_key_opens_so_many_projects_and_another_key_its_own(tmp_path, database):
    with World(tmp_path / "hub", database) as world:
        for number in range(100):
            world.open_project(f"project {number}")
        refused(world.ask("owner", "POST", "/v1/projects", {"name": "one more"}), "QUOTA_EXCEEDED", 413)
        world.allow("other")
        assert world.ask("other", "POST", "/v1/projects", {"name": "of another"}).status_code == 201


def test_an_operator_sets_the_limit_of_projects(tmp_path):
    with World(tmp_path / "hub", projects_per_key=1) as world:
        world.open_project()
        refused(world.ask("owner", "POST", "/v1/projects", {"name": "two"}), "QUOTA_EXCEEDED", 413)
