"""A whole exchange through Flower's own processes: a SuperLink, and a SuperNode for each party."""

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from datacollab_flower import ACTION, NODE_FOLDER, RECORD, party_folder, relay_folder, send
from flwr.app import ConfigRecord, RecordDict
from playing_adapters import PARTIES, play, prepare

APP = Path(__file__).parents[1] / "app"
BIN = Path(sys.executable).parent


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


class Federation:
    """Flower's processes; what they print is kept beside the folders."""

    def __init__(self, root, stack):
        self.root, self.stack, self.port = root, stack, free_port()
        home = root / "flower"
        home.mkdir()
        (home / "config.toml").write_text(f'[superlink.test]\naddress = "127.0.0.1:{self.port}"\ninsecure = true\n')
        quiet = {"FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # Flower's programs start one another by their names
        self.environment = os.environ | quiet | {"PATH": path, "DATACOLLAB_RELAY": str(root / "analyst")}
        self.start("superlink", "--port", str(self.port), "--disable-runtime-dependency-installation")
        for name in PARTIES:
            node = f'{NODE_FOLDER}="{root / name}"'
            link = ["--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port())]
            self.start("supernode", *link, "--node-config", node, name=name)

    def start(self, program, *options, name=""):
        said = self.stack.enter_context((self.root / f"{program}{name}.log").open("wb"))
        process = subprocess.Popen(
            [BIN / f"flower-{program}", "--insecure", *options],
            stdout=said,
            stderr=subprocess.STDOUT,
            env=self.environment,
        )
        self.stack.callback(process.wait, timeout=60)
        self.stack.callback(process.terminate)

    def carry(self):
        command = [BIN / "flwr", "run", APP, "test", "--stream", "-c", "members=2 seconds=300"]
        for _ in range(60):
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, timeout=900, check=False
            )
            if done.returncode == 0:
                break
            time.sleep(2)  # the SuperLink is still starting
        assert done.returncode == 0, done.stdout + done.stderr
        said = done.stdout + done.stderr
        assert "did not answer" not in said, said
        assert "refused" not in said, said
        assert "relay:" in said, said


def test_an_exchange_through_flower_predicts_as_one_by_files(tmp_path):
    world = prepare(tmp_path)
    with ExitStack() as stack:
        play(world, Federation(tmp_path, stack).carry)


def test_a_node_that_answers_without_the_record_is_silent_and_stops_nobody(monkeypatch):
    # Flower makes messages only within a run.
    monkeypatch.setattr("datacollab_flower.Message", lambda content, **metadata: SimpleNamespace(**metadata))
    contents = {1: RecordDict(), 2: RecordDict({RECORD: ConfigRecord({"came": 0})})}

    class Line:
        def send_and_receive(self, messages, timeout):
            for message in messages:
                assert message.message_type == ACTION
                metadata = SimpleNamespace(src_node_id=message.dst_node_id)
                content = contents[message.dst_node_id]
                yield SimpleNamespace(metadata=metadata, has_error=lambda: False, content=content)

    messages = {str(node): {"act": "deliver"} for node in contents}
    assert send(Line(), messages, 1.0) == {"2": {"came": 0}}


@pytest.mark.parametrize("given", [None, 7, "/nowhere"])
def test_without_a_folder_of_its_own_nobody_answers(given, monkeypatch):
    with pytest.raises(ValueError, match="--node-config"):
        party_folder(SimpleNamespace(node_config={NODE_FOLDER: given}))
    monkeypatch.setenv("DATACOLLAB_RELAY", "/nowhere")
    with pytest.raises(ValueError, match="flower-superlink"):
        relay_folder()


def test_what_is_sent_to_supernodes_holds_no_code():
    assert [path.name for path in APP.rglob("*") if path.is_file()] == ["pyproject.toml"]
