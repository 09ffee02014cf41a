"""All roles in one process, as scikit-learn estimators, the baselines Central and Local, and simulated parties."""

from ._baselines import Central, Local, PartyStratifiedKFold
from ._data_collaboration import (
    DataCollaborationClassifier,
    DataCollaborationClusterer,
    DataCollaborationRegressor,
    DataCollaborationSurvival,
)
from ._simulation import PartySimulation, simulate_parties

__all__ = ["Central", "DataCollaborationClassifier", "DataCollaborationClusterer", "DataCollaborationRegressor"]
__all__ += ["DataCollaborationSurvival", "Local", "PartySimulation", "PartyStratifiedKFold", "simulate_parties"]
