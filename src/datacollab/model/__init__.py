"""What goes back to a party: its integration function g_k and the model h, and how to apply them."""

from ._codec import MODEL_KIND, model_contents, model_from
from ._maps import IntegrationFunction, KernelMap, LinearMap
from ._party_model import PartyModel

__all__ = [
    "MODEL_KIND",
    "IntegrationFunction",
    "KernelMap",
    "LinearMap",
    "PartyModel",
    "model_contents",
    "model_from",
]
