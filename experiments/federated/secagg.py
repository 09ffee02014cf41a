"""One sum under masks: datacollab's, beside Flower's SecAgg+, for a message of a common model's length.

    python experiments/federated/secagg.py [--parties 5 20 100] [--numbers 8646] [--pairs 5] [--work-dir DIR]

Makes an environment for Flower, and has both add up the same numbers in turn, all parties in one process on one thread.
Bytes are those of a party, in both directions; Flower's are its messages as written for the network, ours the roster
and the masked message.  Seconds are CPU time.  Errors are the largest of a total, of numbers between -1000 and 1000;
ours is without the noise that a project adds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from compare import HERE, flower_environment
from numpy.typing import NDArray

from datacollab.sums import MaskedSum, MaskKey

LARGEST = 1000.0


def add_up(parts: NDArray[np.float64]) -> dict[str, float]:
    """Bytes, seconds and error of a sum by `MaskedSum`."""
    began = time.process_time()
    keys = {party: MaskKey.generate() for party in range(len(parts))}
    roster = {party: key.public for party, key in keys.items()}
    # Every party compiles the agreement; here it is one object for all.
    agreed = MaskedSum({"purpose": "compare"}, roster, noise=np.zeros(parts.shape[1]))
    messages = [agreed.mask(party, part, keys[party]) for party, part in enumerate(parts)]
    of_parties = time.process_time() - began
    total = agreed.total(messages)
    of_server = time.process_time() - began - of_parties
    first = messages[0]
    n_bytes = sum(map(len, roster.values())) + len(first.context) + first.words.nbytes + 32 * len(first.tags)
    return {
        "bytes": n_bytes,
        "party": of_parties / len(parts),
        "server": of_server,
        "exchanges": 1,
        "error": float(np.abs(total - parts.sum(axis=0)).max()),
    }


def add_up_by_flower(python: Path, parts: NDArray[np.float64]) -> dict[str, float]:
    """The same by SecAgg+, in a process of Flower's environment."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "parts.npy"
        np.save(path, parts)
        command = [python, HERE / "run_secagg.py", path, str(LARGEST)]
        environment = os.environ | {"FLWR_TELEMETRY_ENABLED": "0"}
        found = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    measured: dict[str, float] = json.loads(found.splitlines()[-1])
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parties", nargs="+", type=int, default=[5, 20, 100])
    # 128 components, two classes and the constant, as a symmetric matrix.
    parser.add_argument("--numbers", type=int, default=131 * 132 // 2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--work-dir", type=Path, default=Path("output/federated"))
    options = parser.parse_args()
    python = flower_environment(options.work_dir / "flower-environment").absolute()
    print("| parties | sum by | exchanges | kB of a party | CPU ms of a party | CPU ms of the server | largest error |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for n_parties in options.parties:
        draw = np.random.default_rng(n_parties)
        parts = draw.uniform(-LARGEST, LARGEST, (n_parties, options.numbers))
        pairs = [(add_up(parts), add_up_by_flower(python, parts)) for _ in range(options.pairs)]
        for name, runs in zip(("datacollab", "SecAgg+"), zip(*pairs, strict=True), strict=True):
            median = {what: statistics.median(run[what] for run in runs) for what in runs[0]}
            print(
                f"| {n_parties} | {name} | {median['exchanges']:.0f} | {median['bytes'] / 1000:.1f} | "
                f"{1000 * median['party']:.1f} | {1000 * median['server']:.0f} | {median['error']:.0e} |"
            )


if __name__ == "__main__":
    main()
