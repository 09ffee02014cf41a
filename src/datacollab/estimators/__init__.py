"""All roles in one process, as scikit-learn estimators, beside the baselines Central and Local."""

from ._baselines import Central, Local
from ._data_collaboration import DataCollaborationClassifier, DataCollaborationClusterer, DataCollaborationRegressor
from ._splitter import PartyStratifiedKFold
from ._survival import DataCollaborationSurvival

__all__ = [
    "Central",
    "DataCollaborationClassifier",
    "DataCollaborationClusterer",
    "DataCollaborationRegressor",
    "DataCollaborationSurvival",
    "Local",
    "PartyStratifiedKFold",
]
