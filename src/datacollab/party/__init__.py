"""The party's side: its secret f_k, what it shares, and its own predictions.  Never imports ``analyst``."""

from ._benefit import Benefit, Side
from ._defence import Defence
from ._foresee import foresee
from ._foresight import Foresight
from ._gaussian_mechanism import GaussianMechanism, gaussian_delta, gaussian_sigma
from ._guarantee import PrivacyGuarantee
from ._kernel_pca import KernelPCAObfuscator
from ._local_party import LocalParty
from ._microaggregation import Microaggregation
from ._noise import GaussianNoise
from ._obfuscator import obfuscator
from ._paired_intervals import Estimate
from ._party import Party
from ._personal_model import PersonalModel, personalise
from ._state import local_party, party_state
from ._umap import UMAPObfuscator

__all__ = [
    "Benefit",
    "Defence",
    "Estimate",
    "Foresight",
    "GaussianMechanism",
    "GaussianNoise",
    "KernelPCAObfuscator",
    "LocalParty",
    "Microaggregation",
    "Party",
    "PersonalModel",
    "PrivacyGuarantee",
    "Side",
    "UMAPObfuscator",
    "foresee",
    "gaussian_delta",
    "gaussian_sigma",
    "local_party",
    "obfuscator",
    "party_state",
    "personalise",
]
