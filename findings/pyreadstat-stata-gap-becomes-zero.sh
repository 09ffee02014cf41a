#!/usr/bin/env bash
# pyreadstat 1.3.7, read_dta(..., user_missing=True): in a column of whole numbers a plain gap of Stata (.) that stands
# below a tagged one (.a) becomes a number, for the most part 0.  With user_missing=False both are gaps, and so are they
# with output_format="dict".  The file is written by pyreadstat itself; R's haven writes columns of decimals alone,
# which are not concerned.
#
# Seen: column x is .a, 1, ., 3; read with user_missing=True it is 'a', 1, 0, 3, and 0 is a value like any other.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet pyreadstat==1.3.7 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import pandas as pd
import pyreadstat

table = pd.DataFrame({"x": pd.Series(["a", 1, None, 3], dtype=object), "y": [1.5, None, 2.0, 3.0]})
pyreadstat.write_dta(table, "t.dta", missing_user_values={"x": ["a"]})
kinds = pyreadstat.read_dta("t.dta", metadataonly=True)[1].readstat_variable_types
with_tags = pyreadstat.read_dta("t.dta", user_missing=True)[0]["x"].tolist()
without = pyreadstat.read_dta("t.dta")[0]["x"].isna().tolist()
as_dict = list(pyreadstat.read_dta("t.dta", user_missing=True, output_format="dict")[0]["x"])
print(f"pyreadstat {pyreadstat.__version__}, pandas {pd.__version__}, Python {sys.version.split()[0]}; types {kinds}")
print(f"user_missing=True: {with_tags}; as a dict: {as_dict}; gaps with user_missing=False: {without}")
is_number = isinstance(with_tags[2], int) and not isinstance(with_tags[2], bool)
sys.exit(0 if is_number and without == [True, False, True, False] and as_dict[2] is None else 1)
PYTHON
