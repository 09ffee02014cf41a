"""The benchmark's federated averaging beside Flower's: the same weights after all rounds."""

from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from numpy.testing import assert_allclose
from scipy.special import softmax

from datacollab_experiments.oneshot.methods import RATE, ROUNDS, STEPS, FederatedAveraging, kind_of, logistic
from datacollab_experiments.oneshot.tasks import PRESETS
from datacollab_experiments.pays.draws import draw
from datacollab_experiments.pays.tables import load_table

DIGITS = [setting for setting in PRESETS["quick"].settings if setting.dataset == "digits"]
"""Settings whose table comes with scikit-learn."""


class Parties:
    """Flower's grid in one process: each node is a party, and takes its steps from the weights that it is sent."""

    def __init__(self, drawn):
        self.drawn, self.names, self.n_asked = drawn, list(drawn.parties), 0

    def get_node_ids(self):
        return range(len(self.names))

    def send_and_receive(self, messages, *, timeout):
        return [self.train(message) for message in messages]

    def train(self, message):
        rows = self.drawn.parties[self.names[message.dst_node_id]]
        V = np.column_stack([kind_of(self.drawn).common.transform(rows.X), np.ones(len(rows))])
        W = message.content["arrays"]["W"].numpy()
        for _ in range(STEPS):
            W = W - RATE / len(rows) * V.T @ (softmax(V @ W, axis=1) - np.eye(self.drawn.n_classes)[rows.y])
        self.n_asked += 1
        said = {"arrays": ArrayRecord({"W": Array(W)}), "metrics": MetricRecord({"num-examples": len(rows)})}
        return SimpleNamespace(content=RecordDict(said), has_error=lambda: False)


@pytest.mark.parametrize("setting", DIGITS, ids=lambda setting: f"{setting.n_parties}-{setting.split}")
def test_weights_after_all_rounds_are_those_of_flowers_fedavg(setting, monkeypatch):
    # Flower makes messages only within a run.
    monkeypatch.setattr("flwr.serverapp.strategy.fedavg.Message", lambda **message: SimpleNamespace(**message))
    drawn = draw(load_table(setting.dataset), setting, 0)
    start = logistic(kind_of(drawn).common.transform(drawn.public.X), drawn.public.y, drawn)
    parties, initial = Parties(drawn), Array(np.vstack([start.coefficients, start.intercept]))
    by_flower = FedAvg(fraction_evaluate=0.0).start(parties, ArrayRecord({"W": initial}), num_rounds=ROUNDS)
    assert parties.n_asked == ROUNDS * setting.n_parties
    [predict] = FederatedAveraging().play(drawn, attacked=False).models
    ours = np.vstack([predict.__self__.coefficients, predict.__self__.intercept])
    assert np.abs(ours - initial.numpy()).max() > 0.1
    assert_allclose(ours, by_flower.arrays["W"].numpy(), rtol=0, atol=1e-12)
