"""What h may be when it crosses: a chain of steps from a closed vocabulary, each of them arrays and a few numbers.

A linear model is an affine step and a link, a forest one step of trees, a network affine steps with functions between
them, a calibrated model or a vote a weighted mean of chains.  What comes from elsewhere is evaluated by this package's
own code from arrays whose shapes and bounds were checked; no object of another library is made of it but the tables of
nodes that scikit-learn's trees walk along, which are derived here.
"""

from ._chain import Chain, read_chain
from ._clusters import mixture_classes, mixture_novelty, nearest_centre
from ._export import SENDABLE, sent_form
from ._parts import Parts
from ._received import ReceivedClassifier, ReceivedRegressor, read_predictor, write_predictor

__all__ = [
    "SENDABLE",
    "Chain",
    "Parts",
    "ReceivedClassifier",
    "ReceivedRegressor",
    "mixture_classes",
    "mixture_novelty",
    "nearest_centre",
    "read_chain",
    "read_predictor",
    "sent_form",
    "write_predictor",
]
