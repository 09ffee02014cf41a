"""Seconds that KTI takes on the processor and on a graphics processor, side by side in one process.

The anchors are parties' PCAs of MNIST.  Each fit is done twice on each device, in turns, after a small one that loads
the library; the least time counts.  Both targets span the same space, or the largest angle between them is shown.

    python -m datacollab_experiments.solvers.device [--anchors 2000 8000] [--parties 10] [--data-dir DIR]
"""

import argparse
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import subspace_angles
from threadpoolctl import threadpool_info

from datacollab import KTI

from .mnist_parties import draw_parties, load_table

# The least of two counts: other work on the machine only adds.
_REPEATS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anchors", type=int, nargs="+", default=[2000, 8000])
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    arguments = parser.parse_args()
    torch: Any = importlib.import_module("torch")
    X, y = load_table("mnist", arguments.data_dir)
    name = torch.cuda.get_device_name(0)
    n_threads = max(pool["num_threads"] for pool in threadpool_info())
    print(f"{arguments.parties} parties of 16 columns, 16 components; {n_threads} threads; {name}\n")
    print("| anchor rows | solver | processor, s | device, s | ratio | angle between the targets |")
    print("| --- | --- | --- | --- | --- | --- |")

    def there(anchors: dict[str, Any]) -> dict[str, Any]:
        return {party: torch.asarray(A, device="cuda") for party, A in anchors.items()}

    small = draw_parties(X, y, n_anchors=200, n_parties=2)
    KTI(16).fit(there(small))
    for n_anchors in arguments.anchors:
        anchors = draw_parties(X, y, n_anchors=n_anchors, n_parties=arguments.parties)
        moved = there(anchors)
        places: dict[str, Callable[[], KTI]] = {"cpu": lambda: KTI(16).fit(anchors), "gpu": lambda: KTI(16).fit(moved)}  # noqa: B023
        seconds = dict.fromkeys(places, np.inf)
        fitted = {}
        for _ in range(_REPEATS):
            for place, fit in places.items():
                start = time.perf_counter()
                fitted[place] = fit()
                # The device works on after the call returns.
                torch.cuda.synchronize()
                seconds[place] = min(seconds[place], time.perf_counter() - start)
        target: Any = fitted["gpu"].target_
        angle = subspace_angles(fitted["cpu"].target_, target.cpu().numpy()).max()
        print(
            f"| {n_anchors:,} | {fitted['gpu'].solver_} | {seconds['cpu']:.2f} | {seconds['gpu']:.2f} | "
            f"{seconds['cpu'] / seconds['gpu']:.1f} | {angle:.0e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
