"""The party's side: its secret f_k, what it shares, and its own predictions.  Never imports ``analyst``."""

from ._anchor_residuals import AnchorResiduals
from ._benefit import Benefit, Side
from ._class_shift import ClassShift
from ._defence import Defence
from ._foresee import foresee
from ._foresight import Foresight
from ._gaussian_mechanism import GaussianMechanism
from ._gaussian_noise import gaussian_delta, gaussian_sigma
from ._guarantee import PrivacyGuarantee
from ._kernel_pca import KernelPCAObfuscator
from ._labelled_anchors import LabelledAnchors
from ._local_party import LocalParty
from ._microaggregation import Microaggregation
from ._noise import GaussianNoise
from ._obfuscator import obfuscator
from ._paired_intervals import Estimate
from ._party import Party
from ._personal_model import PersonalModel, personalise
from ._personal_state import personal_model, personal_state
from ._promise import Promise
from ._published import Published
from ._state import local_party, party_state
from ._umap import UMAPObfuscator

__all__ = [
    "AnchorResiduals",
    "Benefit",
    "ClassShift",
    "Defence",
    "Estimate",
    "Foresight",
    "GaussianMechanism",
    "GaussianNoise",
    "KernelPCAObfuscator",
    "LabelledAnchors",
    "LocalParty",
    "Microaggregation",
    "Party",
    "PersonalModel",
    "PrivacyGuarantee",
    "Promise",
    "Published",
    "Side",
    "UMAPObfuscator",
    "foresee",
    "gaussian_delta",
    "gaussian_sigma",
    "local_party",
    "obfuscator",
    "party_state",
    "personal_model",
    "personal_state",
    "personalise",
]
