"""`hub demo` plays an exchange through a hub of its own, and all that it began ends with it."""

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from datacollab_hub.commands import _demo
from datacollab_hub.commands._stage import Stage, Step
from hub_process import free_port
from suite import IS_NIGHTLY

PLAY = """
import sys
from pathlib import Path

import typer

from datacollab.cli.kit import one_line_errors
from datacollab_hub.commands._stage import Stage, Step

def hub(port):
    return Step("", ("hub", "serve", "--data", f"hub-{port}", "--port", port))

try:
    with one_line_errors("All has ended."), Stage(Path(sys.argv[1])) as stage:
        stage.serve(hub(sys.argv[2]), Path(sys.argv[1]) / "hub.log")
        stage.play(hub(sys.argv[3]))
except typer.Exit as ended:
    sys.exit(ended.exit_code)
"""


def answers(port):
    with contextlib.suppress(urllib.error.URLError, OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
        return True
    return False


@pytest.mark.nightly
@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(number, marks=pytest.mark.nightly) for number in (signal.SIGTERM, signal.SIGHUP))],
)
def test_a_signal_ends_all_that_was_begun(tmp_path, number):
    ports = [str(free_port()) for _ in range(2)]
    with subprocess.Popen(
        [sys.executable, "-c", PLAY, str(tmp_path / "play"), *ports], stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + 300
        while not all(answers(port) for port in ports):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.1)
        process.send_signal(number)
        said = process.communicate(timeout=300)[1]
    assert (process.returncode, said) == (130, "\ndatacollab: interrupted. All has ended.\n")
    assert not any(answers(port) for port in ports)


@pytest.mark.slow
def test_a_step_that_fails_says_why_and_ends_the_rest(tmp_path):
    port = free_port()
    failed = pytest.raises(ValueError, match="`datacollab keys show nobody` failed; .* It said: datacollab: [A-Z_]+: ")
    with failed, Stage(tmp_path / "play", quiet=True) as stage:
        stage.serve(Step("", ("hub", "serve", "--data", "hub", "--port", str(port))), tmp_path / "log")
        stage.play(Step("", ("keys", "show", "nobody")))
    assert not answers(port)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.slow
def test_what_is_typed_is_nowhere_shown(tmp_path, capsys):
    step = Step("Somebody joins.", ("remote", "join", "-", "-C", "nobody"), typed="s3cret\n")
    with pytest.raises(ValueError, match="remote join - -C nobody"), Stage(tmp_path / "play") as stage:
        stage.play(step)
    assert "# Somebody joins." in (said := capsys.readouterr().out)
    assert "s3cret" not in said + repr(step)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(ValueError, match="is not empty"):
        Stage(tmp_path)


def test_keys_pressed_as_soon_as_they_are_named_end_the_play_in_order(tmp_path, capsys, monkeypatch):
    class Pressed(Stage):
        def say(self, text=""):
            super().say(text)
            if "Ctrl-C" in text:
                raise KeyboardInterrupt

    monkeypatch.setattr(_demo, "_sign_in_link", lambda folder: "http://127.0.0.1/session/made-up")
    with Pressed(tmp_path / "play") as stage:
        hub = stage.serve(Step("", ("--version",)), tmp_path / "hub.log")
        _demo._stay(stage, hub, browser=False)
    assert capsys.readouterr().out.endswith("The hub runs until Ctrl-C.\nThe hub has ended.\n")


@pytest.mark.skipif(not IS_NIGHTLY, reason="plays all commands of six people: make test-nightly")
@pytest.mark.slow
def test_the_whole_play(tmp_path):
    output = tmp_path / "play"
    command = [sys.executable, "-m", "datacollab", "hub", "demo", "--no-browser", "--output", str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "until Ctrl-C" in line:
                break
        said = "".join(lines)
        assert "desk -C" in said, said
        (serving,) = [line for line in lines if line.startswith("$ datacollab hub serve")]
        port = serving.split("--port ")[1].split()[0]
        (link,) = [line.strip() for line in lines if "/session/" in line]
        assert link.startswith(f"http://127.0.0.1:{port}/session/")
        assert answers(port)
        process.send_signal(signal.SIGTERM)
        assert "The hub has ended." in process.stdout.read()
        assert process.wait(timeout=300) == 0
    assert not answers(port)
    assert len((output / "predictions.csv").read_text().splitlines()) == 301
    assert "accuracy" in said
    shown = subprocess.run(
        [sys.executable, "-m", "datacollab", "hub", "log", "verify", "--data", str(output / "hub"), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (log,) = json.loads(shown.stdout)["logs"]
    # Opened; five invited, asked and approved; the agreement; sent: anchor, sums and models; fetched: four anchors, all
    # sums, and two models.
    assert log["entries"] == 1 + 5 * 3 + 1 + (1 + 5 + 5) + (4 + 5 + 2)
    assert len(list((output / "analyst" / "outbox").glob("*.dcmodel"))) == 5
    assert not list(output.glob("*/outbox/*.dcshare"))
    assert link.rpartition("/")[2] not in (output / "hub.log").read_text()
