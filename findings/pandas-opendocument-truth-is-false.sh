#!/usr/bin/env bash
# pandas 3.1.1 with odfpy 1.4.1: every truth value of an OpenDocument table (.ods) is False unless the cell shows TRUE.
# A program shows it in its own language (WAHR, VRAI, VERDADERO) and writes boolean-value="true" beside it, which
# pandas does not look at.  So a column of yes and no is no throughout, without a word.  LibreOffice in French wrote
# such a file, which is in the tests of frictionless 5; python-calamine reads it right.
#
# Seen: two cells with boolean-value="true", shown as TRUE and WAHR: pandas reads True and False, calamine True and True.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet pandas==3.1.1 odfpy==1.4.1 python-calamine==0.9.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import pandas as pd
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P

document = OpenDocumentSpreadsheet()
sheet = Table(name="a")
for shown in ("TRUE", "WAHR"):
    row = TableRow()
    cell = TableCell(valuetype="boolean", booleanvalue="true")
    cell.addElement(P(text=shown))
    row.addElement(cell)
    sheet.addElement(row)
document.spreadsheet.addElement(sheet)
document.save("t.ods")
by_odfpy = pd.read_excel("t.ods", header=None, engine="odf")[0].tolist()
by_calamine = pd.read_excel("t.ods", header=None, engine="calamine")[0].tolist()
print(f"pandas {pd.__version__}, Python {sys.version.split()[0]}: odfpy {by_odfpy}, calamine {by_calamine}")
sys.exit(0 if by_odfpy == [True, False] and by_calamine == [True, True] else 1)
PYTHON
