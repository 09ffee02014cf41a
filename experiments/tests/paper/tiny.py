"""A small experiment that the tests of the harness run: two obfuscators, a few methods, and attacks."""

import numpy as np

from datacollab.analyst import BaseIntegrator
from datacollab.model import LinearMap
from datacollab_experiments.paper import load_experiment

TINY = """
title = "Tiny"

[condition]
dataset = "digits"
n_parties = 3
n_per_party = 40
n_test = 60
n_anchors = 80
n_sources = "real"

[axes]
obfuscator = ["pca", "kernel-pca"]
n_components = [3, 5]
hyperparameters = ["paper", "recommended"]

[methods]
Central = {}
LTI = {}
KTI = {}

[attacks]
names = ["LR", "PINV"]
n_judge = 200
n_per_target = 4

[presets.test]
seeds = 2
"""


class FirstColumns(BaseIntegrator):
    """Takes the first columns as they are: an integration method of one's own, and a poor one."""

    def __init__(self, n_components=10, shift=0.0):
        self.n_components = n_components
        self.shift = shift

    def fit(self, anchors, y=None):
        checked = self._start_fit(anchors)
        self.integration_functions_ = {
            party: LinearMap(party, np.eye(A.shape[1], self.n_components)) for party, A in checked.items()
        }
        return self


class Broken(BaseIntegrator):
    """Fails, as somebody's own method may."""

    def fit(self, anchors, y=None):
        raise ZeroDivisionError("not today")


def tiny(folder, text=TINY, preset="test"):
    path = folder / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    return load_experiment(path, preset)
