"""Clusters on which parties agree by naming the anchor's rows; no rows are shared."""

from ._clusterer import ConsensusClusterer
from ._labels import consensus_labels, indicators

__all__ = ["ConsensusClusterer", "consensus_labels", "indicators"]
