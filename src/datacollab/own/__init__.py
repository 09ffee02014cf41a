"""A party at home: its map f_k on disk, predictions, own models, and the gain from the common one.

* The map at home and on disk: `_local_party`.  Explanations compared: `_explanations`.
* Own models: `_own_models`; pooled with the common one: `_blend`, `_personal_model`; the gain from that: `_benefit`.
* With the common model of sums: `_combined_model`.  Distilled from predictions for the anchor: `_distil`.

`party` builds on this room, and users import its names from there.  Nothing here leaves the party.
"""

from ._benefit import Benefit, Estimate, Side
from ._combined_model import MOST_OWN_ROWS, CombinedModel, OwnModel, fit_own_model
from ._distil import AnchorRidge, DistilledModel, distil_predictions, fit_to_predictions
from ._explanations import explanation_discrepancy
from ._local_party import (
    LocalParty,
    PartyPredictor,
    TableForm,
    check_one_per_row,
    list_components,
    local_party,
    party_state,
)
from ._personal_model import PersonalModel, personal_model, personal_state, personalise

__all__ = ["MOST_OWN_ROWS", "AnchorRidge", "Benefit", "CombinedModel", "DistilledModel", "Estimate"]
__all__ += ["LocalParty", "OwnModel", "PartyPredictor", "PersonalModel", "Side", "TableForm"]
__all__ += ["check_one_per_row", "distil_predictions", "explanation_discrepancy", "fit_own_model", "fit_to_predictions"]
__all__ += ["list_components", "local_party", "party_state", "personal_model", "personal_state", "personalise"]
