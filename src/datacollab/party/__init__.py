"""The party's side: its secret f_k, what it shares, and its own predictions.  Never imports ``analyst``."""

from ._kernel_pca import KernelPCAObfuscator
from ._obfuscator import obfuscator
from ._party import Party
from ._umap import UMAPObfuscator

__all__ = ["KernelPCAObfuscator", "Party", "UMAPObfuscator", "obfuscator"]
