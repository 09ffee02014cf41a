"""Loading the data sets of the paper, and splitting a table into parties."""

from ._available import DatasetInfo, available
from ._dataset import Dataset
from ._fetch import fetch
from ._load import load
from ._party_split import PartyData, PartySplit
from ._split import split_parties

__all__ = [
    "Dataset",
    "DatasetInfo",
    "PartyData",
    "PartySplit",
    "available",
    "fetch",
    "load",
    "split_parties",
]
