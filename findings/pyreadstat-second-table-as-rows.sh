#!/usr/bin/env bash
# A SAS transport file (.xpt) may hold several tables.  pyreadstat 1.3.7 reads the first one of version 5, and goes on:
# the headers and rows of the second one become rows of the first, without a word.  Of version 8, whose header tells
# the number of rows, it reads the first table alone, also without a word.  A file that was cut off is read as far as
# it goes, in either version.  The files are written by pyreadstat itself, one behind the other without the header
# of the library, as SAS's note TS-140 lays them out.
#
# Seen: of two tables of 20 rows each 90 rows in version 5, and 20 in version 8; 10 of a table without its last 160
# bytes, in both.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet pyreadstat==1.3.7 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib
import sys

import pandas as pd
import pyreadstat

table = pd.DataFrame({"x": [float(row) for row in range(20)], "y": [1.0] * 20})
counts = {}
for version in (5, 8):
    path = pathlib.Path("t.xpt")
    pyreadstat.write_xport(table, path, file_format_version=version)
    one = path.read_bytes()
    # The header of the library has three records of 80 bytes.
    path.write_bytes(one + one[240:])
    two = len(pyreadstat.read_xport(path)[0])
    path.write_bytes(one[: len(one) - 160])
    counts[version] = (two, len(pyreadstat.read_xport(path)[0]))
print(f"pyreadstat {pyreadstat.__version__}, pandas {pd.__version__}, Python {sys.version.split()[0]}")
for version, (two, cut) in counts.items():
    print(f"version {version}: {two} rows of two tables of 20 rows; {cut} of one that lacks its last 160 bytes")
is_silent = counts[5][0] > 20 and counts[8][0] == 20 and all(cut < 20 for _, cut in counts.values())
sys.exit(0 if is_silent else 1)
PYTHON
