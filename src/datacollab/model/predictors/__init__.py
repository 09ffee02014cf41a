"""What h may be when it crosses: a chain of steps from a closed vocabulary, each of them arrays and a few numbers.

A linear model is an affine step and a link, a forest one step of trees, a network affine steps with functions between
them, a calibrated model or a vote a weighted mean of chains; a survival model is a
chain to the log risk, and how the hazard adds up.  What comes from elsewhere is evaluated by this package's
own code from arrays whose shapes and bounds were checked; no object of another library is made of it but the tables of
nodes that scikit-learn's trees walk along, which are derived here.
"""

from ._chain import Chain, read_chain
from ._clusters import mixture_classes, mixture_novelty, nearest_centre
from ._export import SENDABLE, sent_form, sent_survival
from ._received import ReceivedClassifier, ReceivedRegressor, read_predictor, write_predictor
from ._step import Budget, Parts
from ._survival import SURVIVAL_PART, ReceivedSurvival, read_survival, write_survival

__all__ = [
    "SENDABLE",
    "SURVIVAL_PART",
    "Budget",
    "Chain",
    "Parts",
    "ReceivedClassifier",
    "ReceivedRegressor",
    "ReceivedSurvival",
    "mixture_classes",
    "mixture_novelty",
    "nearest_centre",
    "read_chain",
    "read_predictor",
    "read_survival",
    "sent_form",
    "sent_survival",
    "write_predictor",
    "write_survival",
]
