"""Makes a party's sums on Spark's executors, and compares them with those of the whole table in this process.

    pip install pyspark==4.3.0        # and Java 17
    python experiments/examples/sums_on_spark.py [--rows 100000] [--columns 20] [--executors 2]

Rows stay where Spark has them: `mapInArrow` hands each executor its batches, of which `PartMaker.part` makes a part.
Only parts come back, to be added up by ``+``.
"""

from __future__ import annotations

import argparse
import functools
import operator
import pickle
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from datacollab.by_sums.party import PartMaker
from datacollab.steps.party import PartyFolder
from datacollab_experiments.sums.speed import PARTIES, write


def make_parts(maker: PartMaker, frame: Any) -> list[Any]:
    """Return the parts of a frame of Spark, each made by the executor that has its rows."""

    def parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(batches)
        if rows:
            part = maker.part(pa.Table.from_batches(rows))
            yield pa.RecordBatch.from_pydict({"part": [pickle.dumps(part)]})

    # The executors are the party's own, so that what they send may be unpickled.
    return [pickle.loads(row.part) for row in frame.mapInArrow(parts, "part binary").collect()]


def main() -> None:
    """Make the sums both ways, and compare them."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--executors", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        write(root, options.rows, options.columns, "ridge regression")
        party = PartyFolder(root / PARTIES[0])
        spark = SparkSession.builder.master(f"local[{options.executors}]").appName("sums").getOrCreate()
        began = time.perf_counter()
        frame = spark.read.parquet(str(root / "table.parquet")).repartition(2 * options.executors)
        parts = make_parts(party.part_maker(), frame)
        total = functools.reduce(operator.add, parts)
        seconds = time.perf_counter() - began
        on_spark = party.prepare(total)
        here = party.prepare(root / "table.parquet")
        spark.stop()
        difference = np.abs(on_spark.part - here.part).max() / np.abs(here.part).max()
        n_other = on_spark.total.table.n_different(here.total.table, options.rows)
        print(f"{options.rows:,} rows in {len(parts)} parts, {seconds:.1f} s; sums differ by {difference:.1g} of the")
        print(f"largest, and {n_other} rows by the ledger's codes.")
        assert difference < 1e-9
        assert n_other == 0


if __name__ == "__main__":
    main()
