#!/usr/bin/env bash
# pandas 3.1.1 reads a zero of a SAS transport file (.xpt) as 5.4e-79, which is 16 to the power of -65.  In this format
# (SAS's note TS-140) zero is eight bytes of 0, and the file here, by pyreadstat 1.3.7, has them; pandas takes their
# mantissa for 1/16.  So a comparison with 0, or the share of zeros, is wrong, without a word.  pyreadstat reads 0.0.
#
# Seen: 0.0 and 1.0 written, and eight bytes of 0 in the file; pandas reads 5.397605346934028e-79 and 1.0.
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

path = pathlib.Path("t.xpt")
pyreadstat.write_xport(pd.DataFrame({"x": [0.0, 1.0]}), path, file_format_version=5)
by_pandas = pd.read_sas(path)["x"].tolist()
by_pyreadstat = pyreadstat.read_xport(path)[0]["x"].tolist()
row = path.read_bytes()[-80:-64]
print(f"pyreadstat {pyreadstat.__version__}, pandas {pd.__version__}, Python {sys.version.split()[0]}")
print(f"0.0 and 1.0 written as {row.hex(' ', 8)}: pandas reads {by_pandas}, pyreadstat {by_pyreadstat}")
unchanged = row[:8] == bytes(8) and 0 < by_pandas[0] < 1e-78 and by_pyreadstat == [0.0, 1.0]
sys.exit(0 if unchanged else 1)
PYTHON
