"""Federated averaging with Flower beside data collaboration, on the same MNIST parties: one command, one table.

    python experiments/federated/compare.py --data-dir DIR [--seeds 3] [--work-dir output/federated]

Makes an environment for Flower, draws the parties, tunes both sides on a draw of other rows, runs both, and prints the
table; it is written to the work directory as table.md, with all numbers in results.json.  Goes on where it stopped;
remove the work directory to start anew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import draws
import numpy as np
import run_datacollab as collaboration
from averaging import federated_averaging
from mlp import Parameters, Settings, accuracy, initial_parameters
from perceptron import Perceptron

from datacollab.datasets import load
from table import render

HERE = Path(__file__).resolve().parent

LEARNING_RATES = (0.03, 0.1, 0.3)
BATCH_SIZES = (10, 50)
LOCAL_EPOCHS = (1, 5, 20)
EPOCHS = (10, 30, 100)
GRID = [Settings(*values) for values in product(LEARNING_RATES, EPOCHS, BATCH_SIZES)]
FEDERATED_GRID = [Settings(*values) for values in product(LEARNING_RATES, LOCAL_EPOCHS, BATCH_SIZES)]

CHECKPOINTS = (1, 5, 10, 20, 50, 100)
PUBLIC_CHECKPOINTS = (1, 5, 20)
LAST_ROUND_OF_LONG_UPDATES = 20
"""Twenty local epochs are not tried for more rounds: they have long settled, and would take most of the time."""


class Store:
    """Results in one directory, each computed once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def get(self, name: str, compute: Callable[[], Any]) -> Any:
        """The result of that name, from its file where there is one."""
        path = self.directory / f"{name}.json"
        if not path.exists():
            began = time.perf_counter()
            result = compute()
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(result, indent=2), encoding="utf-8")
            unfinished.rename(path)
            print(f"{name} ({time.perf_counter() - began:.0f} s)", file=sys.stderr, flush=True)
        return json.loads(path.read_text(encoding="utf-8"))


def flower_environment(directory: Path) -> Path:
    """Make the environment unless it is there; its interpreter."""
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = directory / "requirements.installed"
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        print(f"installing Flower into {directory}", file=sys.stderr, flush=True)
        venv.create(directory, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True)
        done.write_text(wanted, encoding="utf-8")
    return python


def draw_file(directory: Path, data: Any, split: draws.Split, seed: int) -> Path:
    """File of a draw, made where it is missing."""
    path = directory / f"draw-{split}-{seed}.npz"
    if not path.exists():
        draws.write(path, draws.draw(data, split, seed))
    return path


def tune_models(split: str, drawn: draws.Draw, store: Store) -> dict[str, dict[str, Any]]:
    """Settings of the perceptron for every baseline and every way to collaborate."""
    tuned = {}
    for name in ("Local", "Central"):
        tuned[name] = store.get(f"tuned-{split}-{name}", partial(tune_baseline, name, drawn))
    # They have about as many rows as Central, and would take most of the time to tune.
    tuned["Local+Public"] = tuned["Central+Public"] = tuned["Central"]
    for way in collaboration.COLLABORATIONS:
        tuned[way.key] = store.get(f"tuned-{split}-{way.key}", partial(tune_collaboration, way, drawn))
    return tuned


def tune_baseline(name: str, drawn: draws.Draw) -> dict[str, Any]:
    """The best settings of the grid without collaboration."""
    return best(lambda settings: collaboration.measure_baseline(name, Perceptron(**settings), drawn)["accuracy"])


def tune_collaboration(way: collaboration.Collaboration, drawn: draws.Draw) -> dict[str, Any]:
    """The best settings of the grid for h: the shares are made once, so this costs no further exchange."""
    exchanged = collaboration.exchange(way, drawn)

    def score(settings: dict[str, Any]) -> float:
        model = Perceptron(**settings, standardize=True)
        return collaboration.measure_collaboration(exchanged, model)["accuracy"]

    return best(score)


def best(score: Callable[[dict[str, Any]], float]) -> dict[str, Any]:
    """The settings of the grid that score best; of equals, the first."""
    return max(map(asdict, GRID), key=score)


def public_start(drawn: draws.Draw, settings: dict[str, Any]) -> Parameters:
    """Parameters trained on the public rows, which the server may have done before the first round."""
    model = Perceptron(**settings, seed=drawn.seed).fit(drawn.X_public, drawn.y_public)
    return model.parameters_


def tune_averaging(drawn: draws.Draw, start: Parameters, checkpoints: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """The settings that are best after each number of rounds, by the plain loop."""
    scores: dict[int, list[tuple[float, Settings]]] = {wanted: [] for wanted in checkpoints}
    for settings in FEDERATED_GRID:
        longest = settings.epochs == max(LOCAL_EPOCHS)
        n_rounds = min(max(checkpoints), LAST_ROUND_OF_LONG_UPDATES) if longest else max(checkpoints)
        rounds = federated_averaging(start, drawn.parties, settings, n_rounds=n_rounds, seed=drawn.seed)
        for round_number, parameters in enumerate(rounds, start=1):
            if round_number in scores:
                score = accuracy(parameters, drawn.X_test, drawn.y_test)
                scores[round_number].append((score, settings))
    return {str(wanted): asdict(max(found, key=lambda pair: pair[0])[1]) for wanted, found in scores.items()}


def averaging_jobs(
    drawn_from: Path, start: Path | None, tuned: dict[str, dict[str, Any]], *, split: str, seed: int, method: str
) -> list[dict[str, Any]]:
    """One job for each different setting, as long as the last number of rounds for which it is the best."""
    by_settings: dict[Settings, list[int]] = {}
    for checkpoint, settings in tuned.items():
        by_settings.setdefault(Settings(**settings), []).append(int(checkpoint))
    return [
        {
            "name": f"{split}-{seed}-{method}-{number}",
            "split": split,
            "seed": seed,
            "method": method,
            "draw": str(drawn_from.resolve()),
            "start": None if start is None else str(start.resolve()),
            "settings": asdict(settings),
            "checkpoints": checkpoints,
        }
        for number, (settings, checkpoints) in enumerate(by_settings.items())
    ]


def run_flower(python: Path, jobs: list[dict[str, Any]], store: Store) -> list[dict[str, Any]]:
    """Run the jobs that have no result yet, in Flower's environment; all results."""
    job_file, log = store.directory / "jobs.json", store.directory / "flower.log"
    job_file.write_text(json.dumps(jobs, indent=2), encoding="utf-8")
    results = [store.directory / f"{job['name']}.json" for job in jobs]
    if not all(result.exists() for result in results):
        print(f"running Flower's simulation; its log is {log}", file=sys.stderr, flush=True)
        quiet = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
        with log.open("w", encoding="utf-8") as stream:
            subprocess.run(
                [python, HERE / "run_flower.py", job_file, store.directory],
                check=True,
                env=os.environ | quiet,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
    return [json.loads(result.read_text(encoding="utf-8")) for result in results]


def largest_difference_from_loop(result: dict[str, Any]) -> float:
    """Largest difference between the accuracies of Flower and of the plain loop in one job."""
    drawn = draws.read(Path(result["draw"]))
    start = initial_parameters(drawn.X.shape[-1], seed=drawn.seed)
    n_rounds = max(result["checkpoints"])
    settings = Settings(**result["settings"])
    rounds = federated_averaging(start, drawn.parties, settings, n_rounds=n_rounds, seed=drawn.seed)
    difference = 0.0
    for round_number, parameters in enumerate(rounds, start=1):
        if str(round_number) in result["reached"]:
            reached = float(result["reached"][str(round_number)]["accuracy"])
            difference = max(difference, abs(accuracy(parameters, drawn.X_test, drawn.y_test) - reached))
    return difference


def measure_locally(split: str, drawn: draws.Draw, tuned: dict[str, dict[str, Any]], store: Store) -> dict[str, Any]:
    """All that needs no Flower, for one draw."""
    measured: dict[str, Any] = {}
    for name in collaboration.BASELINES:
        measure = partial(measure_baseline, name, tuned[name], drawn)
        measured |= store.get(f"{split}-{drawn.seed}-{name}", measure)
    for way in collaboration.COLLABORATIONS:
        measure = partial(measure_collaboration, way, tuned[way.key], drawn)
        measured |= store.get(f"{split}-{drawn.seed}-{way.key}", measure)
    return measured


def measure_baseline(name: str, settings: dict[str, Any], drawn: draws.Draw) -> dict[str, Any]:
    """A baseline with both models."""
    return {
        f"{name}/{kind}": collaboration.measure_baseline(name, model, drawn)
        for kind, model in collaboration.models(settings, drawn.seed, standardize=False).items()
    }


def measure_collaboration(
    way: collaboration.Collaboration, settings: dict[str, Any], drawn: draws.Draw
) -> dict[str, Any]:
    """One exchange, with both models on its shares."""
    exchanged = collaboration.exchange(way, drawn)
    return {
        f"{way.key}/{kind}": collaboration.measure_collaboration(exchanged, model)
        for kind, model in collaboration.models(settings, drawn.seed, standardize=True).items()
    }


def start_file(directory: Path, drawn: draws.Draw, split: str, settings: dict[str, Any]) -> Path:
    """File of the parameters trained on the public rows."""
    path = directory / f"start-{split}-{drawn.seed}.npz"
    np.savez(path, *public_start(drawn, settings))
    return path


def tune_split(split: str, drawn: draws.Draw, store: Store) -> dict[str, dict[str, Any]]:
    """Settings of everything that is tuned, from the development draw."""
    tuned = tune_models(split, drawn, store)
    plain = initial_parameters(drawn.X.shape[-1], seed=drawn.seed)
    warm = public_start(drawn, tuned["Central"])
    for name, start, checkpoints in (("FedAvg", plain, CHECKPOINTS), ("FedAvg+Public", warm, PUBLIC_CHECKPOINTS)):
        search = partial(tune_averaging, drawn, start, checkpoints)
        tuned[name] = store.get(f"tuned-{split}-{name}", search)
    return tuned


def compare(data_dir: Path | None, work_dir: Path, n_seeds: int) -> dict[str, Any]:
    """All results, by split and seed."""
    store = Store(work_dir / "results")
    python = flower_environment(work_dir / "flower-environment")
    data = load("mnist", data_dir=data_dir)
    tuned: dict[str, Any] = {}
    measured: dict[str, list[dict[str, Any]]] = {}
    jobs: list[dict[str, Any]] = []
    for split in draws.SPLITS:
        development = draws.read(draw_file(store.directory, data, split, draws.DEVELOPMENT))
        tuned[split] = tune_split(split, development, store)
        collaboration.warm_up(development)
        measured[split] = []
        for seed in range(n_seeds):
            path = draw_file(store.directory, data, split, seed)
            drawn = draws.read(path)
            measured[split].append(measure_locally(split, drawn, tuned[split], store))
            starts = {
                "FedAvg": None,
                "FedAvg+Public": start_file(store.directory, drawn, split, tuned[split]["Central"]),
            }
            for name, start in starts.items():
                jobs += averaging_jobs(path, start, tuned[split][name], split=split, seed=seed, method=name)
    finished = run_flower(python, jobs, store)
    for result in finished:
        for checkpoint, reached in result["reached"].items():
            measured[result["split"]][result["seed"]][f"{result['method']}/{checkpoint}"] = reached
    first = next(result for result in finished if result["start"] is None)
    difference = store.get("difference-from-loop", partial(largest_difference_from_loop, first))
    return {"tuned": tuned, "measured": measured, "largest_difference_from_loop": difference}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST; see `datacollab data fetch`")
    parser.add_argument("--seeds", type=int, default=3, help="draws of parties (default 3)")
    parser.add_argument("--work-dir", type=Path, default=Path("output/federated"))
    arguments = parser.parse_args()
    results = compare(arguments.data_dir, arguments.work_dir, arguments.seeds)
    (arguments.work_dir / "results.json").write_text(json.dumps(results, indent=2), encoding="utf-8")
    text = render(results)
    (arguments.work_dir / "table.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
