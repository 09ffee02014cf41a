#!/usr/bin/env bash
# Flower 1.42.0's SecAgg+ takes an even number of shares that is less than the number of parties, warns that it should be
# odd, and goes on with one more; but the parties have been told the even number by then.  They cut their keys into as
# many shares, and have one party more to send one to: every party ends in an IndexError while it shares its keys, and no
# sum is made.  With an odd number the same ten parties get their sum.
#
# Seen: with 5 shares the mean of ten parties' ones is 1.000; with 4 shares "IndexError: list index out of range" of all
# ten parties, after the warning.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet flwr==1.42.0
cd "$folder"
FLWR_TELEMETRY_ENABLED=0 "$folder/venv/bin/python" - <<'PYTHON'
import importlib.metadata
import sys
from types import SimpleNamespace

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

N_PARTIES = 10
TaskIdentity.run_id = TaskIdentity.task_id = 1
TaskIdentity.node_id = 0


class OneSum(FedAvg):
    """All parties take part, and the mean is kept."""

    mean = None

    def configure_fit(self, *_):
        proxies = [SimpleNamespace(node_id=node, cid=str(node)) for node in range(1, N_PARTIES + 1)]
        return [(proxy, FitIns(Parameters([], "numpy.ndarray"), {})) for proxy in proxies]

    def aggregate_fit(self, server_round, results, failures):
        self.mean = parameters_to_ndarrays(results[0][1].parameters)[0]
        return None, {}


class Network:
    """Carries messages between the server and the parties, all in this process."""

    def __init__(self):
        self.contexts = {
            node: Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={})
            for node in range(1, N_PARTIES + 1)
        }
        self.errors = []

    def send_and_receive(self, messages, **_):
        answers = []
        for message in messages:
            sent = message_from_proto(message_to_proto(message))
            try:
                answer = secaggplus_mod(sent, self.contexts[message.metadata.dst_node_id], self.fit)
            except IndexError as error:
                self.errors.append(str(error))
                continue
            answers.append(message_from_proto(message_to_proto(answer)))
        return answers

    def fit(self, message, context):
        result = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([np.ones(3)]), num_examples=1, metrics={})
        return Message(fitres_to_recorddict(result, keep_input=True), reply_to=message)


def add_up(n_shares):
    """Return the mean of the parties' ones, and the errors of parties."""
    state = RecordDict()
    state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: 1})
    state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord()
    server = Context(run_id=1, node_id=0, node_config={}, state=state, run_config={})
    strategy = OneSum()
    network = Network()
    workflow = SecAggPlusWorkflow(n_shares, 3, max_weight=1.0)
    workflow(network, LegacyContext(server, strategy=strategy, client_manager=SimpleClientManager()))
    return strategy.mean, network.errors


odd, even = add_up(5), add_up(4)
print(f"flwr {importlib.metadata.version('flwr')}, Python {sys.version.split()[0]}")
print("5 shares: mean", odd[0], "errors", len(odd[1]))
print("4 shares: mean", even[0], "errors", len(even[1]), set(even[1]))
unchanged = np.allclose(odd[0], 1, atol=1e-3) and not odd[1] and even[0] is None and len(even[1]) == N_PARTIES
sys.exit(0 if unchanged else 1)
PYTHON
