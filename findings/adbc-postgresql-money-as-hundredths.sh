#!/usr/bin/env bash
# adbc-driver-postgresql 1.13.0 gives PostgreSQL's type money as a column of int64 that counts hundredths (of a currency
# with two decimals): 12.34 is 1234, and nothing but the field's metadata tells it from a bigint.  Other types that the
# driver has no numbers for, as numeric and inet, are marked as arrow.opaque.  CAST(x AS numeric) keeps the point.
#
# Seen: int64, 1234 for 12.34::money, and '12.34' for its cast to numeric.
#
# This needs the programs initdb and pg_ctl of PostgreSQL, and not to be run by root (as root, it becomes nobody).
# It ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
programs=$(dirname "$(ls -d /usr/lib/postgresql/*/bin/initdb "$(command -v initdb || true)" 2>/dev/null | head -1)")
folder=$(mktemp -d)
as=()
if [ "$(id -u)" = 0 ]; then
    chown nobody "$folder"
    as=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups)
fi
cd "$folder"
trap '"${as[@]}" "$programs/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet adbc-driver-postgresql==1.13.0 adbc-driver-manager==1.13.0 pyarrow==26.0.1
"${as[@]}" "$programs/initdb" -D "$folder/data" -U me -A trust -N --no-locale -E UTF8 >/dev/null
"${as[@]}" "$programs/pg_ctl" -D "$folder/data" -w -o "-c listen_addresses= -k $folder" -l "$folder/data/log" start >/dev/null
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version

from adbc_driver_postgresql import dbapi

with dbapi.connect(f"postgresql:///postgres?host={sys.argv[1]}&user=me") as connection, connection.cursor() as cursor:
    cursor.execute("SELECT 12.34::money AS money, CAST(12.34::money AS numeric) AS numeric")
    found = cursor.fetch_arrow_table()
    cursor.execute("SELECT current_setting('server_version')")
    server = cursor.fetchone()[0]
print(f"adbc-driver-postgresql {version('adbc-driver-postgresql')}, Python {sys.version.split()[0]}, PostgreSQL {server}")
row = found.to_pylist()[0]
print(f"{found.schema.field('money').type}: {row['money']!r}; numeric: {row['numeric']!r}")
sys.exit(0 if str(found.schema.field("money").type) == "int64" and row == {"money": 1234, "numeric": "12.34"} else 1)
PYTHON
