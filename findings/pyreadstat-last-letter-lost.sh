#!/usr/bin/env bash
# pyreadstat 1.3.7: where an SPSS file says UTF-8 and holds texts of Windows-1252, an accented letter at the end of an
# entry is lost without a word, and an entry of this letter alone is empty, as a gap is.  In the middle of an entry the
# same letter is an error.  A text that was cut in the middle of a letter is meant to be read, and this looks like one.
# With encoding="WINDOWS-1252" all entries are right.  The file is written by pyreadstat itself, with two letters
# replaced by their bytes in Windows-1252.
#
# Seen: the entries "caffè" and "è" are read as "caff" and ""; with encoding="WINDOWS-1252" as "caffè" and "è".
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

path = pathlib.Path("t.sav")
pyreadstat.write_sav(pd.DataFrame({"word": ["caff\u00e8", "\u00e8"]}), path)
data = path.read_bytes()
path.write_bytes(data.replace("\u00e8".encode(), b"\xe8 "))
as_it_says = pyreadstat.read_sav(path)[0]["word"].tolist()
as_it_is = pyreadstat.read_sav(path, encoding="WINDOWS-1252")[0]["word"].tolist()
print(f"pyreadstat {pyreadstat.__version__}, pandas {pd.__version__}, Python {sys.version.split()[0]}")
print(f"as the file says: {as_it_says}; with encoding='WINDOWS-1252': {as_it_is}")
sys.exit(0 if as_it_says == ["caff", ""] and as_it_is == ["caff\u00e8", "\u00e8"] else 1)
PYTHON
