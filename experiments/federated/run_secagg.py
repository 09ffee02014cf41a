"""One sum by Flower's SecAgg+; runs in Flower's own environment, all parties in this process and no network between.

FLWR_TELEMETRY_ENABLED=0 python run_secagg.py parts.npy LARGEST

Prints bytes, seconds of CPU, messages and the largest error as JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitIns, FitRes, Parameters, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.compat.common.recorddict_compat import fitres_to_recorddict
from flwr.server import SimpleClientManager
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.supercore.task_identity import TaskIdentity
from numpy.typing import NDArray

MOST_SHARES = 21
"""Of a party's keys: with 100 parties, SecAgg+ masks a message with 20 others, and not with all."""


class Proxy:
    """A party as the server's strategy knows it."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.cid = str(node_id)


class OneSum(FedAvg):
    """All parties take part, and the mean of their numbers is kept."""

    def __init__(self, n_parties: int) -> None:
        super().__init__()
        self.n_parties = n_parties
        self.mean: NDArray[np.float64] | None = None

    def configure_fit(self, *_: Any) -> list[tuple[Any, FitIns]]:
        """An empty instruction for each party."""
        return [(Proxy(node), FitIns(Parameters([], "numpy.ndarray"), {})) for node in range(1, self.n_parties + 1)]

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> tuple[None, dict[str, Any]]:
        """Keep the mean, which every result holds by now."""
        assert not failures
        self.mean = parameters_to_ndarrays(results[0][1].parameters)[0]
        return None, {}


class Play:
    """The network between server and parties: calls each party's own code, and counts."""

    def __init__(self, parts: NDArray[np.float64]) -> None:
        self.parts = parts
        empty: dict[str, Any] = {"run_id": 1, "node_config": {}, "run_config": {}}
        self.contexts = {node: Context(node_id=node, state=RecordDict(), **empty) for node in range(1, len(parts) + 1)}
        self.n_bytes = 0
        self.n_exchanges = 0
        self.seconds = 0.0

    def send_and_receive(self, messages: Iterable[Message], **_: Any) -> list[Message]:
        """Have every party answer the server once."""
        self.n_exchanges += 1
        answers = []
        for message in messages:
            sent = self._carry(message)
            began = time.process_time()
            answer = secaggplus_mod(sent, self.contexts[message.metadata.dst_node_id], self._fit)
            self.seconds += time.process_time() - began
            answers.append(self._carry(answer))
        return answers

    def _carry(self, message: Message) -> Message:
        """Return the message as it is read from its bytes."""
        written = message_to_proto(message)
        self.n_bytes += written.ByteSize()
        return message_from_proto(written)

    def _fit(self, message: Message, context: Context) -> Message:
        part = ndarrays_to_parameters([self.parts[context.node_id - 1]])
        result = FitRes(Status(Code.OK, ""), part, num_examples=1, metrics={})
        return Message(fitres_to_recorddict(result, keep_input=True), reply_to=message)


def main() -> None:
    logging.disable(logging.WARNING)
    parts = np.load(sys.argv[1])
    # As Flower's server process does before it writes messages.
    TaskIdentity.run_id = 1
    TaskIdentity.node_id = 0
    TaskIdentity.task_id = 1
    play = Play(parts)
    strategy = OneSum(len(parts))
    state = RecordDict()
    state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: 1})
    state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord()
    server = Context(run_id=1, node_id=0, node_config={}, state=state, run_config={})
    # Two thirds of those who hold shares of a party's keys restore them if it drops out.
    n_shares = min(len(parts), MOST_SHARES)
    workflow = SecAggPlusWorkflow(n_shares, 2 * n_shares // 3, max_weight=1.0, clipping_range=float(sys.argv[2]))
    began = time.process_time()
    workflow(play, LegacyContext(server, strategy=strategy, client_manager=SimpleClientManager()))
    whole = time.process_time() - began
    assert strategy.mean is not None
    error = float(np.abs(len(parts) * strategy.mean - parts.sum(axis=0)).max())
    print(
        json.dumps(
            {
                "bytes": play.n_bytes / len(parts),
                "party": play.seconds / len(parts),
                "server": whole - play.seconds,
                "exchanges": play.n_exchanges,
                "error": error,
            }
        )
    )


if __name__ == "__main__":
    main()
