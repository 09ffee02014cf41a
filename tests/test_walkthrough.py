"""The walkthrough is what `datacollab demo --roles` does, with the output that it gives."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "walkthrough.md"
MOST_COMMANDS = 12
VARYING = re.compile(
    r"approved by \S+|[a-z0-9]{4}(-[a-z0-9]{4}){3}|[0-9a-f]{64}|\d[\d,.]*"
    r"|\b(KTI|LTI|ODC)\b|LandmarkRidgeClassifier|CalibratedForestClassifier"
)
"""Figures and keys, and what is chosen anew in each run."""


def commands_and_outputs(text):
    """A list of (command, lines of its output)."""
    steps = []
    for line in re.sub(r" \\\n +", " ", text).splitlines():
        if line.startswith("$ datacollab"):
            steps.append((line, []))
        elif steps and line.strip() and not line.startswith("# "):
            steps[-1][1].append(line.rstrip())
    return steps


def documented():
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return commands_and_outputs("\n".join(blocks))


def masked(lines):
    """Lines without figures and keys; risks, labels, candidates and gains, which are drawn anew, are left out."""
    drawn_anew = re.compile(r" %|AUC|^  lights|^  targets|^ {22}(\d+: \d|(?:membership )?(?:red|amber|green)$)| ± ")
    return [VARYING.sub("#", line) for line in lines if not drawn_anew.search(line)]


def test_it_has_few_enough_commands_up_to_the_predictions():
    commands = [command for command, _ in documented()]
    predicting = next(number for number, command in enumerate(commands, 1) if " party predict " in command)
    assert predicting <= MOST_COMMANDS


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
    played = commands_and_outputs(done.stdout)
    assert [command for command, _ in documented()] == [command for command, _ in played]
    for (command, told), (_, found) in zip(documented(), played, strict=True):
        if told == ["..."]:
            continue
        assert masked(told) == masked(found), command
    (installed,) = [told for command, told in played if " party install " in command]
    assert any("Collaboration" in line and "95 % interval" in line for line in installed)
    (shown,) = [told for command, told in played if " share tables/hospital-a.csv" in command]
    assert any("none is one of yours" in line for line in shown)
    assert any("from a model made here" in line for line in shown)
    assert not any("ABOVE" in line for line in shown)
    predictions = (tmp_path / "exchange" / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert predictions[0] == "prediction"
    assert len(predictions) == 301
