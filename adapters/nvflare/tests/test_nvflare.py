"""A whole exchange through NVFlare's simulator: a server, and a process for each party."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from datacollab_nvflare import Carrier, party_folder, relay_folder
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable
from nvflare.app_common.default_component_policy import DEFAULT_CLASS_ALLOW_LIST
from playing_adapters import PARTIES, play, prepare

JOB = Path(__file__).parents[1] / "job"
CLASSES = ["datacollab_nvflare.Relay", "datacollab_nvflare.Carrier"]


def simulated(root, number):
    """One round, in a workspace of its own whose sites allow the two classes and no code of a job's."""
    workspace = root / f"nvflare-{number}"
    local = workspace / "local"
    local.mkdir(parents=True)
    allowed = {"format_version": 2, "class_allow_list": [*DEFAULT_CLASS_ALLOW_LIST, *CLASSES]}
    (local / "resources.json.default").write_text(json.dumps(allowed))
    folders = {"DATACOLLAB_FOLDER": str(root / "{site}"), "DATACOLLAB_RELAY": str(root / "analyst")}
    command = [Path(sys.executable).parent / "nvflare", "simulator", JOB, "-w", workspace, "-c", ",".join(PARTIES)]
    done = subprocess.run(
        [*command, "-t", str(len(PARTIES))],
        env=os.environ | folders,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "did not answer" not in said, said
    assert "refused" not in said, said
    assert "files came" in said, said


def test_an_exchange_through_nvflare_predicts_as_one_by_files(tmp_path):
    rounds = iter(range(3))
    play(prepare(tmp_path), lambda: simulated(tmp_path, next(rounds)))


@pytest.mark.parametrize("site", ["", ".", "..", "a/b", "/a"])
def test_a_sites_name_leads_nowhere_else(site, monkeypatch, tmp_path):
    monkeypatch.setenv("DATACOLLAB_FOLDER", str(tmp_path / "{site}"))
    with pytest.raises(ValueError, match="part of a path"):
        party_folder(site)


def test_without_a_folder_nobody_answers(monkeypatch):
    monkeypatch.setenv("DATACOLLAB_FOLDER", "/nowhere/{site}")
    monkeypatch.delenv("DATACOLLAB_RELAY", raising=False)
    with pytest.raises(ValueError, match="DATACOLLAB_FOLDER"):
        party_folder("a")
    with pytest.raises(ValueError, match="DATACOLLAB_RELAY"):
        relay_folder()


@pytest.mark.parametrize(
    ("task", "data"), [("train", {"datacollab": {}}), ("datacollab", {}), ("datacollab", {"datacollab": 1})]
)
def test_other_tasks_are_unknown(task, data):
    assert Carrier().execute(task, Shareable(data), None, None).get_return_code() == ReturnCode.TASK_UNKNOWN


def test_the_job_holds_no_code():
    assert {path.suffix for path in JOB.rglob("*") if path.is_file()} == {".json"}
