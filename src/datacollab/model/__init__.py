"""What goes back to a party: its integration function g_k and the model h, and how to apply them."""

from ._maps import IntegrationFunction, KernelMap, LinearMap
from ._party_model import PartyModel

__all__ = ["IntegrationFunction", "KernelMap", "LinearMap", "PartyModel"]
