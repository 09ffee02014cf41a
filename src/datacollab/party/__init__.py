"""The party's side: its secret f_k, what it shares, and its own predictions.  Never imports ``analyst``.

* The role: `_party`, `_local_party`; in sums, `_common_space`, `_combined_model`.
* Obfuscators f_k: `_kernel_pca`, `_umap`.  Defences: `_defence`.  How rows leave: `_plan`.  Promises: `_release`.
* Own models and the common one together: `_personal_model`, `_own_models`; distilled: `_distil`.  On disk: `_state`.
"""

from ._combined_model import MOST_OWN_ROWS, CombinedModel, OwnModel, fit_own_model
from ._common_space import CommonSpace
from ._defence import Defence, GaussianMechanism, GaussianNoise, Microaggregation, Promise, Published
from ._distil import AnchorRidge, DistilledModel, distil_predictions, fit_to_predictions
from ._kernel_pca import KernelPCAObfuscator
from ._local_party import ExplanationAgreement, LocalParty, PartyPredictor, explanation_agreement
from ._party import Party
from ._personal_model import Benefit, Estimate, PersonalModel, Side, personal_model, personal_state, personalise
from ._plan import OBFUSCATORS, PRESETS, UNDEFENDED, SharingPlan, obfuscator
from ._release import PrivacyGuarantee
from ._state import local_party, party_state
from ._umap import UMAPObfuscator

__all__ = [
    "MOST_OWN_ROWS",
    "OBFUSCATORS",
    "PRESETS",
    "UNDEFENDED",
    "AnchorRidge",
    "Benefit",
    "CombinedModel",
    "CommonSpace",
    "Defence",
    "DistilledModel",
    "Estimate",
    "ExplanationAgreement",
    "GaussianMechanism",
    "GaussianNoise",
    "KernelPCAObfuscator",
    "LocalParty",
    "Microaggregation",
    "OwnModel",
    "Party",
    "PartyPredictor",
    "PersonalModel",
    "PrivacyGuarantee",
    "Promise",
    "Published",
    "SharingPlan",
    "Side",
    "UMAPObfuscator",
    "distil_predictions",
    "explanation_agreement",
    "fit_own_model",
    "fit_to_predictions",
    "local_party",
    "obfuscator",
    "party_state",
    "personal_model",
    "personal_state",
    "personalise",
]
