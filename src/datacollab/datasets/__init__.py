"""Loading the data sets of the paper, and splitting a table into parties."""

from ._load import Dataset, DatasetInfo, available, fetch, load
from ._split import PartyData, PartySplit, split_parties

__all__ = ["Dataset", "DatasetInfo", "PartyData", "PartySplit", "available", "fetch", "load", "split_parties"]
