"""Federated averaging by Flower's simulation; runs in Flower's own environment.

    FLWR_TELEMETRY_ENABLED=0 python run_flower.py jobs.json RESULTS_DIR

One simulation with one processor core serves all jobs, so none of them pays for its start.  A job whose result file
exists is not run again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import draws
import numpy as np
from averaging import local_update
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from mlp import Settings, accuracy, initial_parameters


def count_bytes(message: Message) -> int:
    """Size of a message's records, as Flower counts it."""
    return sum(record.count_bytes() for record in message.content.values())


class CountingFedAvg(FedAvg):
    """Flower's own strategy; the bytes of all messages are added up on the way, and every party must answer."""

    def __init__(self) -> None:
        super().__init__(fraction_evaluate=0.0, min_train_nodes=draws.N_PARTIES, min_available_nodes=draws.N_PARTIES)
        self.n_bytes = 0

    def configure_train(self, *arguments: Any, **options: Any) -> Iterable[Message]:
        """Messages to the parties, counted."""
        messages = list(super().configure_train(*arguments, **options))
        self.n_bytes += sum(map(count_bytes, messages))
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Mean of the parties' answers, counted."""
        answers = list(replies)
        failures = [answer for answer in answers if answer.has_error()]
        if failures or len(answers) != draws.N_PARTIES:
            raise RuntimeError(
                f"Round {server_round}: {len(answers)} of {draws.N_PARTIES} parties answered, {len(failures)} of them "
                "with an error; see Flower's log."
            )
        self.n_bytes += sum(map(count_bytes, answers))
        return super().aggregate_train(server_round, answers)


client = ClientApp()


@client.train()
def train_locally(message: Message, context: Context) -> Message:
    """One party's part of one round."""
    config = message.content["config"]
    party = int(context.node_config["partition-id"])
    rows = draws.read(Path(str(config["draw"]))).parties[party]
    settings = Settings(float(config["learning_rate"]), int(config["epochs"]), int(config["batch_size"]))
    updated = local_update(
        message.content["arrays"].to_numpy_ndarrays(),
        rows,
        settings,
        seed=int(config["seed"]),
        party=party,
        round_number=int(config["server-round"]),
    )
    answer = {"arrays": ArrayRecord(updated), "metrics": MetricRecord({"num-examples": len(rows[1])})}
    return Message(content=RecordDict(answer), reply_to=message)


def run(job: dict[str, Any], grid: Grid) -> dict[str, Any]:
    """Accuracy, bytes so far and seconds so far at the wanted rounds."""
    drawn = draws.read(Path(job["draw"]))
    if job["start"]:
        with np.load(job["start"]) as arrays:
            start = [arrays[name] for name in arrays.files]
    else:
        start = initial_parameters(drawn.X.shape[-1], seed=drawn.seed)
    strategy = CountingFedAvg()
    reached: dict[str, dict[str, float]] = {}
    began = time.perf_counter()

    def note(server_round: int, arrays: ArrayRecord) -> None:
        if server_round in job["checkpoints"]:
            seconds = time.perf_counter() - began
            score = accuracy(arrays.to_numpy_ndarrays(), drawn.X_test, drawn.y_test)
            reached[str(server_round)] = {"accuracy": score, "bytes": strategy.n_bytes, "seconds": seconds}

    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(start),
        num_rounds=max(job["checkpoints"]),
        train_config=ConfigRecord({"draw": job["draw"], "seed": drawn.seed, **job["settings"]}),
        evaluate_fn=note,
    )
    return {**job, "reached": reached}


def main() -> None:
    jobs, results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    server = ServerApp()

    pending = [job for job in jobs if not (results / f"{job['name']}.json").exists()]

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        run(pending[0] | {"checkpoints": [1]}, grid)  # Ray starts its worker at the first message
        for job in pending:
            result = json.dumps(run(job, grid), indent=2)
            (results / f"{job['name']}.json").write_text(result, encoding="utf-8")

    run_simulation(
        server_app=server,
        client_app=client,
        num_supernodes=draws.N_PARTIES,
        backend_config={
            "init_args": {"num_cpus": 1, "object_store_memory": 200_000_000, "log_to_driver": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )


if __name__ == "__main__":
    main()
