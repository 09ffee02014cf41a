"""How dense honest anchors are around parties' own rows, beside the limit in `policy.toml`.

Parties draw rows of twelve tables alike, with a mix of classes of their own, or with a region of their own.  Anchors
are public rows, or uniform in the declared ranges.

Run ``python -m datacollab_experiments.sums.density --output FILE``; ``--data-dir`` is where the tables are.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from datacollab.anchor import anchor_fit
from datacollab.folder.party import Policy

from ..harness import write_table
from ..pays.draws import draw
from ..pays.settings import SIZES, Setting, Split
from ..pays.tables import load_table
from .crafted import is_refused
from .playing import ALIKE

SPLITS: tuple[Split, ...] = ("iid", "label-skew", "feature-shift")
N_PUBLIC = (100, 500, 0)
SEEDS = (0, 1, 2)
N_EXPECTED = 4000


def rows(data_dir: Path | None) -> Iterator[dict[str, object]]:
    """Yield a row for each table, split and number of public rows; 0 are uniform ones."""
    limit = Policy().max_anchor_density
    for name, (n_parties, n_per_party) in SIZES.items():
        table = load_table(name, data_dir)
        for split in SPLITS:
            # Numbers have no classes to be skewed in.
            if split == "label-skew" and table.task == "regression":
                continue
            for n_public in N_PUBLIC:
                # At least 100 rows are left over, so that draws differ.
                if len(table.y) < n_parties * n_per_party + n_public + 100:
                    continue
                setting = Setting(
                    dataset=name,
                    n_parties=n_parties,
                    n_per_party=n_per_party,
                    split=split,
                    n_public=n_public,
                    labelled=n_public > 0,
                )
                found = []
                for seed in SEEDS:
                    drawn = draw(table, setting, seed)
                    anchor = drawn.anchor
                    # Uniform anchors are compared with draws from the declared ranges, as a party's program does.
                    expected = None
                    if n_public:
                        anchor = drawn.public.X
                    else:
                        expected = table.uniform(N_EXPECTED, np.random.default_rng([seed, 19]))
                    rows = [own.X for own in drawn.parties.values()]
                    found += [anchor_fit(anchor, X, expected=expected, by_column=name not in ALIKE) for X in rows]
                density = np.array([fit.density for fit in found])
                yield {
                    "table": name,
                    "split": split,
                    "public rows": n_public,
                    "parties": len(density),
                    "median": round(float(np.median(density)), 2),
                    "largest": round(float(density.max()), 2),
                    "refused, dense": round(float((density > limit).mean()), 3),
                    "refused, else": round(float(np.mean([is_refused(fit) for fit in found])), 3),
                }


if __name__ == "__main__":
    write_table(rows, data_dir=None)
