#!/usr/bin/env bash
# Importing skops.io 0.16.0 imports every module of scikit-learn 1.9.1, its test tools, and with them pytest and dask
# where they are installed: skops/io/_trusted_types.py asks sklearn.utils.all_estimators() when it is imported.  A
# command that only wants to read one small model begins some seconds later for it.
#
# Seen: 492 modules more than sklearn.ensemble and sklearn.linear_model need, pytest and dask among them, and .5 s of
# processor time.  Commands of sums keep their models as arrays, and never import skops.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet skops==0.16.0 scikit-learn==1.9.1 pytest==9.2.0 dask==2026.8.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import time

import sklearn.ensemble
import sklearn.linear_model

before, start = set(sys.modules), time.process_time()
import skops
import skops.io

seconds, more = time.process_time() - start, set(sys.modules) - before
found = sorted({"pytest", "dask", "sklearn.utils._testing", "sklearn.manifold", "sklearn.neural_network"} & more)
print(f"skops {skops.__version__}, scikit-learn {sklearn.__version__}, Python {sys.version.split()[0]}")
print(f"importing skops.io imports {len(more)} modules in {seconds:.1f} s of processor time, among them {found}")
sys.exit(0 if len(found) == 5 else 1)
PYTHON
