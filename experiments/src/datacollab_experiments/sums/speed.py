"""How long a party takes to share sums of a large table, and how much memory.

A party of three adds up a Parquet file of normal numbers that share ten factors, with a target of two classes, behind a
model's common map, or for a description.  Every share is a fresh process on a fresh folder: seconds of CPU and bytes at
the peak are those of the whole process, imports included.  With `--beside SRC`, the sources of another version share
the same file in turn, and the sums of both are compared.

With `--workers 1 2`, processes of Dask make the sums in parts instead.  With `--database sqlite`, duckdb, or an
address ``postgresql://…`` in which the table `speed` is written anew, the rows come from there by a query.

    python -m datacollab_experiments.sums.speed [--rows 1000000] [--columns 50] [--pairs 5] [--beside SRC]
"""

import argparse
import functools
import json
import operator
import resource
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

import datacollab
from datacollab.agreement import AnchorRecipe, Project, Sharing, Task, make_anchor, project_text, seal_anchor
from datacollab.bundle import KeyPair
from datacollab.by_sums.party import AddedRows, PartMaker, PreparedSum
from datacollab.steps.party import PartyFolder, make_mask_key
from datacollab.table import Column

from ..harness import markdown
from ..pays.tables import Array
from ..solvers.measuring import run_in_fresh_process

FACTORS = 10
PUBLIC = 1000
BATCH = 50_000
PARTIES = ("north", "south", "west")


def widths(n_columns: int) -> Array:
    """Return the widths of declared ranges: columns that are all alike would have another map."""
    return np.asarray(10.0 ** (np.arange(n_columns) % 4), dtype=np.float64)


def draw(n_rows: int, n_columns: int, seed: int) -> pa.Table:
    """Return rows of numbers that share ten factors, and a class that depends on them."""
    random = np.random.default_rng(seed)
    loadings = np.random.default_rng(0).normal(size=(FACTORS, n_columns))
    factors = random.normal(size=(n_rows, FACTORS))
    X = np.clip((factors @ loadings + random.normal(size=(n_rows, n_columns))) * 4 + 50, 0, 100)
    X *= widths(n_columns) / 100
    ill = np.where(factors[:, 0] + random.normal(size=n_rows) > 0, "yes", "no")
    columns = {f"c{place}": X[:, place] for place in range(n_columns)}
    return pa.table({**columns, "ill": ill})


def write(root: Path, n_rows: int, n_columns: int, statistic: str) -> None:
    """Write a project, its anchor, the party's folder and its table into a new folder."""
    keys = {name: KeyPair.generate() for name in (*PARTIES, "analyst")}
    for name in PARTIES:
        (root / name).mkdir()
        keys[name].save(root / name / "keys.json")
    mask_keys = {name: make_mask_key(root / name) for name in PARTIES}
    entities = {name: f"The {name} hospital" for name in PARTIES} | {"analyst": "The institute"}
    project = Project(
        name="speed",
        purpose="Measure.",
        columns=tuple(
            Column(name=f"c{place}", kind="number", minimum=0.0, maximum=width)
            for place, width in enumerate(widths(n_columns).tolist())
        ),
        task=Task(kind="classification", target="ill", classes=("no", "yes")),
        anchor=AnchorRecipe(method="sample", n_rows=PUBLIC, source="a register"),
        max_components=3,
        owner=keys["north"].public,
        analyst=keys["analyst"].public,
        parties={name: keys[name].public for name in PARTIES},
        sharing=Sharing(mask_keys=mask_keys, entities=entities, statistics=(statistic,)),
    )
    (root / "project.toml").write_text(project_text(project, keys["north"]), encoding="utf-8")
    anchor_file = None
    if project.has_anchor:
        anchor_file = root / "anchor.dcanchor"
        anchor = make_anchor(project, draw(2 * PUBLIC, n_columns, 1).to_pandas(), where="public rows", random_state=0)
        anchor_file.write_bytes(seal_anchor(anchor, project, keys["north"]))
    party = PartyFolder.join(root / PARTIES[0], root / "project.toml", anchor_file)
    party.confirm([keys[name].public.fingerprint for name in PARTIES[1:]])
    with pq.ParquetWriter(root / "table.parquet", draw(1, n_columns, 2).schema) as writer:
        for start in range(0, n_rows, BATCH):
            writer.write_table(draw(min(BATCH, n_rows - start), n_columns, 2 + start))


def fill(root: Path, database: str) -> str:
    """Copy the table's rows into a table of a database, and return where that is."""
    # Of an extra that other measurements do without.
    import adbc_driver_postgresql.dbapi
    import duckdb

    rows = pq.ParquetFile(root / "table.parquet")
    place = str(root / f"table.{database}")
    if database == "sqlite":
        names = rows.schema_arrow.names
        with sqlite3.connect(place) as connection:
            connection.execute(f"CREATE TABLE speed ({', '.join(names)})")
            for batch in rows.iter_batches():
                entries = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                connection.executemany(f"INSERT INTO speed VALUES ({', '.join('?' * len(names))})", entries)
        connection.close()
    elif database == "duckdb":
        with duckdb.connect(place) as connection:
            connection.execute(f"CREATE TABLE speed AS FROM '{root / 'table.parquet'}'")
    else:
        place = database
        with adbc_driver_postgresql.dbapi.connect(place) as connection, connection.cursor() as cursor:
            reader = pa.RecordBatchReader.from_batches(rows.schema_arrow, rows.iter_batches())
            cursor.adbc_ingest("speed", reader, mode="replace")
            connection.commit()
    return place


def share(root: Path, sums: Path | None, database: str | None) -> None:
    """Share the table in this process, or write its sums into a file instead, and print CPU seconds and bytes."""
    party = PartyFolder(root / PARTIES[0])
    table: Any = root / "table.parquet"
    if database is not None:
        # Sources of another version may lack it.
        from datacollab.table import Query

        table = Query(database, "SELECT * FROM speed")
    if sums is None:
        party.share(table, approve=lambda summary: "me")
    else:
        prepared = party.prepare(table)
        assert isinstance(prepared, PreparedSum)
        np.save(sums, prepared.part)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "memory": 1024 * used.ru_maxrss}))


def run(root: Path, source: Path, sums: Path | None = None, database: str | None = None) -> dict[str, float]:
    """Call `share` in a fresh process with the sources of one version, on a fresh copy of the party's folder."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        shutil.copytree(root / PARTIES[0], fresh / PARTIES[0])
        (fresh / "table.parquet").symlink_to(root / "table.parquet")
        arguments: list[object] = ["--share", fresh]
        if sums is not None:
            arguments += ["--sums", sums]
        if database is not None:
            arguments += ["--database", database]
        measured: dict[str, float]
        measured = run_in_fresh_process(f"{__package__}.speed", arguments, source)
    return measured


def compare(root: Path, options: argparse.Namespace) -> list[str]:
    """Share by this version and another one in turn, and return a line of the table."""
    own = Path(datacollab.__file__).parents[1]
    sources = [own] if options.beside is None else [own, options.beside]
    runs: list[list[dict[str, float]]] = [[] for _ in sources]
    place = None if options.database is None else fill(root, options.database)
    for _ in range(options.pairs):
        for source, those in zip(sources, runs, strict=True):
            those.append(run(root, source, database=place))
    line = [f"{options.rows:,}", f"{options.columns}", options.statistic]
    for those in runs:
        line += [f"{np.median([each['cpu'] for each in those]):.1f}"]
        line += [f"{np.median([each['memory'] for each in those]) / 2**30:.2f}"]
    if options.beside is not None:
        line.append(f"{np.median([now['cpu'] / then['cpu'] for now, then in zip(*runs, strict=True)]):.2f}")
        sums = []
        for number, source in enumerate(sources):
            file = root / f"sums{number}.npy"
            run(root, source, file)
            sums.append(np.load(file))
        line.append(f"{np.abs(sums[0] - sums[1]).max() / np.abs(sums[1]).max():.1g}")
    return line


def part_of_file(maker: PartMaker, path: Path, group: int) -> AddedRows:
    """Return the part of one group of rows of a Parquet file, on a worker."""
    return maker.part(pq.ParquetFile(path).read_row_group(group))


def time_workers(root: Path, n_workers: int) -> float:
    """Return seconds on the clock in which so many processes of Dask make the table's parts and add them up."""
    table = root / "table.parquet"
    maker = PartyFolder(root / PARTIES[0]).part_maker()
    groups = range(pq.ParquetFile(table).metadata.num_row_groups)
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        # The first part loads code, on each worker.
        client.run(part_of_file, maker, table, 0)
        start = time.perf_counter()
        parts = [dask.delayed(part_of_file)(dask.delayed(maker), table, group) for group in groups]
        total = client.compute(dask.delayed(functools.reduce)(operator.add, parts)).result()
        seconds = time.perf_counter() - start
    assert len(total.hashed) == pq.ParquetFile(table).metadata.num_rows
    return seconds


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.speed", description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--statistic", default="ridge regression", help="or one of a study, such as description")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--beside", type=Path, help="src of another version, which shares in turn")
    parser.add_argument("--workers", type=int, nargs="+", help="make parts on so many processes of Dask instead")
    parser.add_argument("--database", help="read the rows of sqlite, duckdb or postgresql://…, by a query")
    parser.add_argument("--share", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--sums", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.share is not None:
        share(options.share, options.sums, options.database)
        return
    if options.workers:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), options.rows, options.columns, options.statistic)
            lines = [[f"{n}", f"{time_workers(Path(folder), n):.1f}"] for n in options.workers]
        print(markdown(["workers", "clock, s"], lines, numbers=True))
        return
    header = ["rows", "columns", "statistic", "CPU s", "GiB"]
    if options.beside is not None:
        header += ["CPU s before", "GiB before", "ratio", "sums differ"]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.rows, options.columns, options.statistic)
        print(markdown(header, [compare(Path(folder), options)], numbers=True))


if __name__ == "__main__":
    main()
