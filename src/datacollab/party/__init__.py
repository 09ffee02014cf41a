"""The party's side of an exchange: its secret f_k, and how its rows are defended and shared, once.

* The role: `_party`; in sums, `_common_space`.  Obfuscators f_k: `_kernel_pca`, `_umap`.
* How rows leave: `_sharing_plan`.  Defences: `_defence`; rows behind them, and digests of rows: `_defended_rows`.
* Promises: `_guarantee`.

Models and maps that stay at the party are in `datacollab.own`, whose names can be imported from here as well.  Never
imports ``analyst``.
"""

from ..own import (
    MOST_OWN_ROWS,
    AnchorRidge,
    Benefit,
    CombinedModel,
    DistilledModel,
    Estimate,
    LocalParty,
    OwnModel,
    PartyPredictor,
    PersonalModel,
    Side,
    distil_predictions,
    explanation_discrepancy,
    fit_own_model,
    fit_to_predictions,
    local_party,
    party_state,
    personal_model,
    personal_state,
    personalise,
)
from ._common_space import CommonSpace
from ._defence import Defence, GaussianMechanism, GaussianNoise, Microaggregation, Promise, Published
from ._guarantee import PrivacyGuarantee
from ._kernel_pca import KernelPCAObfuscator
from ._party import Party
from ._sharing_plan import OBFUSCATORS, PRESETS, UNDEFENDED, SharingPlan, obfuscator
from ._umap import UMAPObfuscator

__all__ = ["MOST_OWN_ROWS", "OBFUSCATORS", "PRESETS", "UNDEFENDED", "AnchorRidge", "Benefit", "CombinedModel"]
__all__ += ["CommonSpace", "Defence", "DistilledModel", "Estimate", "GaussianMechanism"]
__all__ += ["GaussianNoise", "KernelPCAObfuscator", "LocalParty", "Microaggregation", "OwnModel", "Party"]
__all__ += ["PartyPredictor", "PersonalModel", "PrivacyGuarantee", "Promise", "Published", "SharingPlan", "Side"]
__all__ += ["UMAPObfuscator", "distil_predictions", "explanation_discrepancy", "fit_own_model", "fit_to_predictions"]
__all__ += ["local_party", "obfuscator", "party_state", "personal_model", "personal_state", "personalise"]
