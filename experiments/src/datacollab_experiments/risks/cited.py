"""Figures that documents cite and no other benchmark has; what each is stands in the module of its name.

    python -m datacollab_experiments.risks.cited demixing [--data-dir DIR] [--draws 5]
    python -m datacollab_experiments.risks.cited left-out [--draws 100]
    python -m datacollab_experiments.risks.cited neighbours [--data-dir DIR] [--draws 10] [--datasets digits ...]

Prints a table.  Demixing takes six minutes, the others less than one; neighbours wants the extra `pays`.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from datacollab.errors import DataCollabWarning

from ..harness import markdown
from ..pays.settings import SIZES
from ..solvers.mnist_parties import data_directory, load_table
from .cited_demixing import demixed, demixing_figures
from .cited_left_out import left_out_figures
from .cited_neighbours import ratios


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", choices=("demixing", "left-out", "neighbours"))
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    parser.add_argument("--draws", type=int, help="how many; by default 5, 100 and 10")
    parser.add_argument("--datasets", nargs="+", choices=SIZES, default=list(SIZES), help="of neighbours")
    options = parser.parse_args(arguments)
    # Fixed seeds are wanted here.
    warnings.simplefilter("ignore", DataCollabWarning)
    if options.figure == "demixing":
        X, y = load_table("mnist", options.data_dir)
        found = [demixed(X, y, seed) for seed in range(options.draws or 5)]
        head = ["party", "groups", "taken apart", "wrongly", "of five rows", "AUC", "AUC by distance", "CPU s"]
        print(markdown(head, demixing_figures(found), numbers=True))
    elif options.figure == "left-out":
        head = ["sought", "left-out predictions", "shrinkage", "correlation, median", "told"]
        print(markdown(head, left_out_figures(options.draws or 100), numbers=True))
    else:
        rows = []
        for dataset in options.datasets:
            pairs = [ratios(dataset, seed, data_directory(options.data_dir)) for seed in range(options.draws or 10)]
            made, real = zip(*pairs, strict=True)
            rows.append([dataset, *(f"{min(each):.2f} to {max(each):.2f}" for each in (made, real))])
        print(markdown(["table", "interpolated", "real"], rows, numbers=True))


if __name__ == "__main__":
    main()
