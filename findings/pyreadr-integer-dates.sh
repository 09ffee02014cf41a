#!/usr/bin/env bash
# pyreadr 0.5.8 reads every date of R that is stored as an integer as 1970-01-01, and numbers of bit64's integer64 as
# the doubles whose bits they are: 1 is 4.9e-324.  Neither warns.  R stores dates as integers where they come from
# seq() by whole days or from data.table; dates stored as doubles are read right.
#
# Seen, in a file of R 4 with three rows: the days 2020-01-01, 2020-02-01 and 2022-01-08 are right as doubles, and all
# 1970-01-01 as integers; 1, 2 and 3 of integer64 are 5e-324, 1e-323 and 1.5e-323.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet pyreadr==0.5.8 pandas==3.1.1
cd "$folder"
# data.frame(day = three dates as integers, real = the same as doubles, id = 1, 2, 3 as integer64), by saveRDS of R.
base64 -d > dates.rds <<'RDS'
WAoAAAACAAQCAgACAwAAAAMTAAAAAwAAAw0AAAADAABHVgAAR3UAAEo4AAAEAgAAAAEABAAJAAAABWNsYXNzAAAAEAAAAAEABAAJAAAABERhdG
UAAAD+AAADDgAAAANA0dWAAAAAAEDR3UAAAAAAQNKOAAAAAAAAAAQCAAAB/wAAABAAAAABAAQACQAAAAREYXRlAAAA/gAAAw4AAAADAAAAAAAA
AAEAAAAAAAAAAgAAAAAAAAADAAAEAgAAAf8AAAAQAAAAAQAEAAkAAAAJaW50ZWdlcjY0AAAA/gAABAIAAAABAAQACQAAAAVuYW1lcwAAABAAAA
ADAAQACQAAAANkYXkABAAJAAAABHJlYWwABAAJAAAAAmlkAAAEAgAAAf8AAAAQAAAAAQAEAAkAAAAKZGF0YS5mcmFtZQAABAIAAAABAAQACQAA
AAlyb3cubmFtZXMAAAANAAAAAoAAAAAAAAADAAAA/g==
RDS
"$folder/venv/bin/python" - <<'PYTHON'
import importlib.metadata
import sys

import pyreadr

(table,) = pyreadr.read_r("dates.rds").values()
versions = [f"{name} {importlib.metadata.version(name)}" for name in ("pyreadr", "pandas")]
print(f"{', '.join(versions)}, Python {sys.version.split()[0]}")
print(table.to_string())
days = ["2020-01-01", "2020-02-01", "2022-01-08"]
unchanged = (
    table["real"].astype(str).tolist() == days
    and table["day"].astype(str).tolist() == 3 * ["1970-01-01"]
    and table["id"].tolist() == [5e-324, 1e-323, 1.5e-323]
)
sys.exit(0 if unchanged else 1)
PYTHON
