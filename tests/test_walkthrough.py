"""The pages of hospital, owner and analyst show what `datacollab demo --roles` does, with the output that it gives."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = [Path(__file__).parents[1] / "docs" / f"{name}.md" for name in ("owner", "hospital", "analyst")]
MOST_COMMANDS, MOST_WORDS = 10, {"owner": 700, "hospital": 1600, "analyst": 700}
VARYING = re.compile(r"approved by \S+|[a-z0-9]{4}(-[a-z0-9]{4}){3}|[0-9a-f]{64}|\d[\d,.]*")
"""Figures and keys."""


def commands_and_outputs(text):
    """A list of (command, lines of its output)."""
    steps = []
    for line in re.sub(r" \\\n +", " ", text).splitlines():
        if line.startswith("$ datacollab"):
            # Fingerprints that were heard are other ones each time.
            steps.append((re.sub(r"(--heard) \S+", r"\1 #", line), []))
        elif steps and line.strip() and not line.startswith("# "):
            steps[-1][1].append(line.rstrip())
    return steps


def documented():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return commands_and_outputs("\n".join(blocks))


def masked(lines):
    """Lines without figures and keys."""
    return [VARYING.sub("#", line) for line in lines]


def test_there_are_few_enough_commands_and_words():
    assert len(documented()) - 1 <= MOST_COMMANDS  # without the evaluation
    for page in PAGES:
        assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS[page.stem]


@pytest.mark.slow
def test_it_is_what_the_program_does_and_says(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "datacollab", "demo", "--roles", "--output", str(tmp_path / "exchange")],
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    played = dict(commands_and_outputs(done.stdout))
    # The page shows one hospital's part, and all else.
    others = [command for command in played if re.search(r" party .*-C hospital-[ac-e]$", command)]
    assert len(others) == 8
    assert {command for command, _ in documented()} == {command for command in played if command not in others}
    for command, told in documented():
        assert masked(told) == masked(played[command]), command
    shared = [told for command, told in played.items() if " party share " in command]
    assert len(shared) == 5
    assert all("No row leaves, and no target." in told for told in shared)
    predictions = (tmp_path / "exchange" / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert predictions[0].startswith("prediction,proba_0,")
    assert len(predictions) == 301
