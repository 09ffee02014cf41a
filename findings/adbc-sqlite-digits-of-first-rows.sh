#!/usr/bin/env bash
# adbc-driver-sqlite 1.13.0 makes a column of text where numbers stand beside texts among the first rows, and writes the
# numbers of these rows with seven digits: 3.14159265358979 becomes 3.141593e+00.  The same number in a later batch of
# the same column keeps its digits, and so do numbers in Python's own sqlite3.
#
# Seen: of 1,024 rows that begin with a text and a number, and one more row with the same number, '3.141593e+00' and
# '3.14159265358979'.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet adbc-driver-sqlite==1.13.0 adbc-driver-manager==1.13.0 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sqlite3
import sys
from importlib.metadata import version

from adbc_driver_sqlite import dbapi

NUMBER = 3.14159265358979
rows = ["a text", NUMBER, *["a text"] * 1022, NUMBER]
with sqlite3.connect("rows.sqlite") as connection:
    connection.execute("CREATE TABLE rows (x)")
    connection.executemany("INSERT INTO rows VALUES (?)", [(each,) for each in rows])
connection.close()
with dbapi.connect("rows.sqlite") as connection, connection.cursor() as cursor:
    cursor.execute("SELECT x FROM rows")
    found = cursor.fetch_arrow_table()["x"].to_pylist()
print(f"adbc-driver-sqlite {version('adbc-driver-sqlite')}, Python {sys.version.split()[0]}")
print(f"row 2: {found[1]!r}, row 1,025: {found[1024]!r}")
sys.exit(0 if (found[1], found[1024]) == ("3.141593e+00", "3.14159265358979") else 1)
PYTHON
