#!/usr/bin/env bash
# pyreadstat 1.3.7 makes a date of a number by a list of display formats, and other formats of the same dates stay
# numbers without a word: days since 1960 in Stata and SAS, seconds since 1582 in SPSS.  Formats that only show the
# date in another order (%tdDD/NN/CCYY), or without the day (MONYY, MOYR), are not in the list.
#
# Seen: 1 January 2020 is a date with %td, DATE9 and EDATE10, and 21915 with %tdDD/NN/CCYY and MONYY7, and 13797216000
# with MOYR8.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet pyreadstat==1.3.7 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import datetime
import sys

import pandas as pd
import pyreadstat as p

DAYS, SECONDS = 21915.0, 13797216000.0
CASES = (
    ("Stata %td", p.write_dta, p.read_dta, DAYS, "%td", True),
    ("Stata %tdDD/NN/CCYY", p.write_dta, p.read_dta, DAYS, "%tdDD/NN/CCYY", False),
    ("SAS DATE9", p.write_xport, p.read_xport, DAYS, "DATE9", True),
    ("SAS MONYY7", p.write_xport, p.read_xport, DAYS, "MONYY7", False),
    ("SPSS EDATE10", p.write_sav, p.read_sav, SECONDS, "EDATE10", True),
    ("SPSS MOYR8", p.write_sav, p.read_sav, SECONDS, "MOYR8", False),
)
print(f"pyreadstat {p.__version__}, pandas {pd.__version__}, Python {sys.version.split()[0]}")
unchanged = True
for name, write, read, number, style, is_date in CASES:
    write(pd.DataFrame({"x": [number]}), "t", variable_format={"x": style})
    (found,) = read("t")[0]["x"].tolist()
    print(f"{name}: {found!r}")
    unchanged &= found == (datetime.date(2020, 1, 1) if is_date else number)
sys.exit(0 if unchanged else 1)
PYTHON
