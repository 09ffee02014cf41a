"""All roles in one process, as scikit-learn estimators, beside the baselines Central and Local."""

from ._baselines import Central, Local, PartyStratifiedKFold
from ._data_collaboration import (
    DataCollaborationClassifier,
    DataCollaborationClusterer,
    DataCollaborationRegressor,
    DataCollaborationSurvival,
)

__all__ = [
    "Central",
    "DataCollaborationClassifier",
    "DataCollaborationClusterer",
    "DataCollaborationRegressor",
    "DataCollaborationSurvival",
    "Local",
    "PartyStratifiedKFold",
]
