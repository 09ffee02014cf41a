"""Files of statistics programs and old workbooks: one table is read alike from all that can hold it, or asked about.

The tables are written by other libraries: pyreadstat, pandas, openpyxl, pyarrow, R's haven and xlwt.
"""

import base64
import datetime
import gzip
import math
import struct
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datacollab._notices import notices_to
from datacollab.errors import ExchangeError
from datacollab.table import Column, Schema, encode_table, read_table, table_batches, write_table

DAY = datetime.date
ROWS = {
    "id": ["001", "002", "003", "004"],
    "age": [64.0, 71.0, None, 40.5],
    "n": [1, 0, None, 3],
    "sex": [1, 2, 2, 1],
    "day": [DAY(2020, 1, 2), None, DAY(1950, 5, 5), DAY(1960, 1, 1)],
    "stamp": [datetime.datetime(2020, 1, 2, 3, 4, 5), None, datetime.datetime(1959, 12, 31, 0, 0, 1), None],
    "clock": [datetime.time(1, 2, 3), None, datetime.time(0), datetime.time(23, 59, 59)],
    "word": ["x", "", "NA", "z"],
}
EXPECTED = {
    "id": ["001", "002", "003", "004"],
    "age": [64.0, 71.0, None, 40.5],
    "n": [1.0, 0.0, None, 3.0],
    "sex": [1, 2, 2, 1],
    "day": ["2020-01-02", None, "1950-05-05", "1960-01-01"],
    "stamp": ["2020-01-02T03:04:05", None, "1959-12-31T00:00:01", None],
    "clock": ["01:02:03", None, "00:00:00", "23:59:59"],
    "word": ["x", None, "NA", "z"],
}
SEX = {"sex": {1: "female", 2: "male"}}


def understood(path, **options):
    lines = []
    with notices_to(lambda line, is_plain: lines.append(line)):
        table = read_table(path, **options)
    (line,) = lines
    for batch_rows in (1, 3):
        batches = list(table_batches(path, batch_rows=batch_rows, **options))
        pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), table)
    return table, line


def refusal(path, code, **options):
    with pytest.raises(ExchangeError) as caught:
        read_table(path, **options)
    assert caught.value.code == code
    assert str(path) in str(caught.value)
    return str(caught.value)


def plain(table):
    """Return entries without types of pandas; a gap is None."""
    return {name: [None if pd.isna(each) else each for each in table[name].tolist()] for name in table}


def frame(rows=ROWS):
    return pd.DataFrame({name: pd.Series(entries, dtype=object) for name, entries in rows.items()}).infer_objects()


def open_document(path, rows, *, cell="", row=""):
    """Write an OpenDocument table as LibreOffice lays one out, with attributes for the first cell and row."""

    def tag(entry, more):
        kinds = {bool: "boolean", int: "float", float: "float", DAY: "date", datetime.datetime: "date"}
        kind = kinds.get(type(entry), "string")
        name = {"float": "value"}.get(kind, f"{kind}-value")
        value = entry.isoformat() if kind == "date" else str(entry).lower()
        about = f'office:value-type="{kind}"' + (f' office:{name}="{value}"' if kind != "string" else "")
        empty = entry is None or entry == ""
        text = "" if empty else f"<text:p>{entry}</text:p>"
        return f"<table:table-cell {'' if empty else about} {more}>{text}</table:table-cell>"

    rest = '<table:table-cell table:number-columns-repeated="{}"/>'
    body = ""
    for number, entries in enumerate(rows):
        cells = "".join(tag(each, cell * (number == place == 0)) for place, each in enumerate(entries))
        body += f"<table:table-row {row * (number == 0)}>{cells}{rest.format(16_384 - len(entries))}</table:table-row>"
    body += f'<table:table-row table:number-rows-repeated="1048000">{rest.format(16_384)}</table:table-row>'
    space = "urn:oasis:names:tc:opendocument:xmlns"
    names = " ".join(f'xmlns:{each}="{space}:{each}:1.0"' for each in ("office", "table", "text"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        packed.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{space}:manifest:1.0"/>')
        packed.writestr(
            "content.xml",
            f"<office:document-content {names}><office:body><office:spreadsheet><table:table table:name='a'>{body}"
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )


def binary_workbook(path, rows, *, merged=None, chart=False):
    """Write numbers and texts as Excel's binary workbook (MS-XLSB), of the records that a reader needs.

    It may have merged cells in the first column of these first and last rows, and a sheet that is a chart.
    """

    def record(kind, data=b""):
        size = b""
        left = len(data)
        while True:
            size += bytes([(left & 127) | (128 if left > 127 else 0)])
            left >>= 7
            if not left:
                break
        return (bytes([kind]) if kind < 128 else struct.pack("<H", kind)) + size + data

    def words(text):
        return struct.pack("<I", len(text)) + text.encode("utf-16-le")

    sheet = record(0x0181) + record(0x0194, bytes(16)) + record(0x0191)
    for number, cells in rows.items():
        sheet += record(0, struct.pack("<I", number) + bytes(21))
        for place, entry in cells.items():
            head = struct.pack("<II", place, 0)
            is_text = isinstance(entry, str)
            sheet += record(6, head + words(entry)) if is_text else record(5, head + struct.pack("<d", entry))
    sheet += record(0x0192)
    if merged:
        sheet += record(0x01B1, struct.pack("<I", 1)) + record(0x01B0, struct.pack("<IIII", *merged, 0, 0))
        sheet += record(0x01B2)
    sheet += record(0x0182)
    book = record(0x0183) + record(0x018F) + record(0x019C, struct.pack("<II", 0, 1) + words("rId1") + words("a"))
    if chart:
        book += record(0x019C, struct.pack("<II", 0, 2) + words("rId2") + words("b"))
    book += record(0x0190) + record(0x0184)
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    link = '<Relationships xmlns="{}"><Relationship Id="rId1" Type="{}/{}" Target="{}"/></Relationships>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("_rels/.rels", link.format(space, kind, "officeDocument", "xl/workbook.bin"))
        links = link.format(space, kind, "worksheet", "worksheets/sheet1.bin")
        if chart:
            second = (
                f'<Relationship Id="rId2" Type="{kind}/chartsheet" Target="chartsheets/sheet1.bin"/></Relationships>'
            )
            links = links.replace("</Relationships>", second)
            packed.writestr("xl/chartsheets/sheet1.bin", record(0x0181) + record(0x0182))
        packed.writestr("xl/_rels/workbook.bin.rels", links)
        packed.writestr("xl/workbook.bin", book)
        packed.writestr("xl/worksheets/sheet1.bin", sheet)


FILES = {
    "sav": (
        "ABzY8000000s~WV^D%PJP}Wok4hRlbaB&QARB-e3aaGV&$S5f(D7MnqPtPpLC{5B!&d=2k&#X!;O7Trh)(=WeObISYEKy)$U|?VeVnzlCU"
        "}1oPNC#sB1;6|<1tT*9ODjV|D-$CH3IWhmkbTSyNPw9Uj6Gc-N|+c>0TTx+7(2SVV#qTh$@?L!U|?v7aKL3wuxkWXdl<Myz}Uqx61%*J7#"
        "IhKIQj-a<x$iyF@kZpe-PLw%t&Dhau0h^YFcS=Y6=TfoEaMK%+N6B09k=#+<zcog!vJOU;c%thpA<Ts`>x_{eLK3{}0LsspE#K6@{9?0Sj"
        "&@n~@AQvN<3-c%fqEK<w#ao0-B1j3wK|^i)ni+dNKSNZS^tR&WAC)HWrtk`o+qw#6lhxdoh{P_ix0FG>L!BLFp)2}?434oxe6m!zit{ri`"
        "}z`zg|%`AeOIh`07G-8E-bOki}|E^9+`~UwRP#q+({{4R}4WiE&rZ42&ELNaC4h>lyHYYzvsJ_4Hsek|f{bOKYf=EUVE)GC)i#kwU71VqH"
        "w<^o_Zvy}T"
    ),
    "dta": (
        "ABzY8000000t4+>KTq5+6gQ<U(5)&<w_8q3#m-ToQazdDk17z=sTC7bcy}>Jq#Sp$UCO}#BNJli(uFU;mw*q!&d?9gscY-R4(WyMmI%qeN"
        "crXcvHfi8IWGaFQDYcs<ghO=5|V=yi9jWI5PSfd3(y{F(U+;i=j~5G3lX;X6al)$p~asQ3!p6y3ARPTQ^7ugj(ft4*BkKH3#``aAJ!VIu~"
        "=hEAA<mBVFj9p(!&9FU6L!uZzn8oIR51Zoq1vT`laQaSC-e_Sl)9yH*0y(@wVe|Hjh0W6%J9x*iJ;KhXbMbB>D3<zn&SNk~wuhKr;azN2F"
        "R{S5zCoLB$I|lsKw3fCz^buRxkdRR-|goDG$(K$f94BSH10PGY6`W2Xlb?Db_2wc_=6OKPkU>j9f*-KWt|kGVN@-5ImtxT^{@-xzbmCf`J"
        "uy-Py7v&6&0qiUpQZ8<fI`YF@;T=nqq@bK{Pc+$1bXki1LeU#YILYnW$xMLLbktRZooUy?6@ug|`_wopL@0#T7d~@dFWc7$J*2t7MUz?=}"
        "oP2*;Fk=fN%8A_QoG-6$%zbzF=a1Xg3S;lBY2EcST?!}1{pqopZWcNyEz_w|$N$xPskS5*{}lfL`8xb{UlafU"
    ),
    "xpt": (
        "ABzY8000000t54Kb#!qJQV4Q&_78H=f&d>+r!Wfz1qBaeIYkICzzY-<f*peuKmdsb8mFLOre|OV;wKfSnCKZP-~`47e*R%bW>yB4R)&UFC"
        "PwId1qy)&7XSLX`hq=7lz$D);4BjZ?B=-yI|qaS4WuOe(h2wjsLsVP#1SK02O|9Z9DRcc`qv!0e;Jq<7#Nrt7&BAIa}NU)pz{ft$AAqm0x"
        "<^zQ(}55`EFsva0@db^YFNZIZr`>nr`9FQy@EBSc+3CsOc7ALgwLd3u{VZB}r}oW)@dux1jJD7^DfAhsP~!#U+Wk1thv9#M9Rm*)4EB1A{"
        "Ul^RT*w35?mx^NUibn2)pxnTO3O)GlBAor1}(kATIrlLN$AjsmE(OXwUh?NM+yR24{902LcKxug2U5$Z!d22>hkvN4R~h^F}Podz&{R8;%"
        "}i1u?dFfeh_fCxGopgMyA&EzVI%4Y!U&%`s(2LJ#"
    ),
    "sas7bdat": (
        "ABzY8000000t4;axl02<6bA5@7%?8jih_cIK`jIiCMq5vn1w_L9z?SC1|nji1`mujVqs?y{5LGEm0)A37J`LfZ)M{F9&tANLb7941;GQqU"
        "y7Ia?ab_wkj)Y{M0rQoThsfs)h7qLUMfHK@6<PG)jdSb<RU-4tJc;<^{8(oJQfP-h8_(WJ}2}6b3TvT9$mZA3#y$tLL+i3@nDzm3;(!~wO"
        "7`@vAKoSBmn>b000000000000000{6|&tL3B}Nb!{c~t!d8dm01bSBe}q3l}64DB~Mjabw|k~oClQkHHZAPqIjNi$RiH9=8&J37ta9z004"
        "f<%VQ?%yXFVT`=$9q<oVI#|84W1tmzr`K2`Iw+e2>3U4DDBy^AW9zDDUAl)gpj+qrl1`i1yVGWl!WMjqkg<7nl}^fvB0xC$!G)&b?+C3@y"
        "HhYB+Fe&D${QEYaG7Uc8gnIy$y>$JQQn@`AoZE-0c)D83A;*b#@58X-ToHAuU_tIxx?@q2BhwWt_Eua;TGYXuU;7@W{p9~@RF8~of8{7=r"
        ">g>791L3LuOFbzEcUwOWOa|V3U6{@uHuF`89$R?GH8(i5m(K2|?lwK43(;$B3i8Tc<#3o>Yy<Bd000000001c1<JGk*8o5O00"
    ),
    "xls": (
        "ABzY8000000t4+>Ur19?82_Dn@8-7rvn?$(SVPFl6f}DX!KPs;#KaV`BB<Gxi8W;jsV`aPQwT**MK6K{L0G-?hYIYiATWvuf<TR)dI}19P"
        "}g_9d$y)6a8N>Wf8&1V`@VC&Kj)smyRWA_(_{CGXRrjjpkpEKggr$k=y4_lH>f@ymu#YR&=a@tU%~01fwbH3B<EF@978$YGth9)cuo|UrR"
        "NBG(cBY__*W3SIfsytIn)vrxIvm+6meEwrpKACWqOxeK4n_Rno*{;)OK1N##ErWY^R#V2elHe%Z2p&kZnG&rV0gkA!qTq%ff7HLw&3(bZW"
        "I!_>63fgGRbB5{<;9oQIom0fz_`!C*y0gU=|$EqbddDt}W`O)yx~);5iNnjz!(9`^&^5?jHf-_ozFUV!vJ7VESApm)#!r_(!Wl$YwSY6dW"
        "b_%U8_BeX(B4Rcp$I~j@eRn4KDbl`{9OIKJ2Dl4m)Zf9D}bO+H;XN2Znl(;jIexl*ffQ|UR(CJ?CdA27Ors{t3(p*o>pi3SuycxL{ZALk~"
        "NVAECk;lA;m#UjOHh25$n_x#v;3#W`_y97GsZFvYh~vDpAmd!Fu`!jd%h+NY(+li%1M|g9^Qk43r7Z=D**nZ_E^=)t#i?ez4Qx)~w-7(_W"
        "&b1J$fv+o;wKts2J<K02gXoBFFQ>3@;8ifQ7*1ulXx6RltOK3ADI^Yw!Jwtx5_=P&f+}G%XLfeFf}Flc5F#WBgvkWbds`?l0lLqDcMMJCM"
        "7#bE)`Xzi7Gg%q|e~vUeTBcsAwkjV)l+kQFMCua{HlvysTMobbhWgJ;)eqR1A&tSsX)SPa4N4RO9Xw37tpvNLuS@GSs<^&emQkb!Fj2>qe"
        "on(mAUumnt!N;$59-C9}#_Ss7{k8tm6lJvTV3eF3S<P3d{;fQ(_bmmYKEg-Y|{flQr_r(bZvf&~i}ELgB$VTB>gn>=5Y40T1et4p%{t}{>"
        "1g7ukX)uI(W^y{PlfqM|8GKPVS=Fd9VM8cO?rcL5|p+q}HkD(hKoJV)Y^OycMiPZiq+tB^@mQbeg7c$B7AIJX*ao>Q$02TlM"
    ),
}
"""The rows, but for clock, by R's haven 2.5.1, with .a, .A or a declared 98 for the gap of n; .xls is by xlwt 1.3.0."""


def write(path, rows=ROWS, *, labels=None):
    """Write a table by another library than ours."""
    table = frame(rows)
    kind = path.suffix[1:]
    named = {"variable_value_labels": labels or {}}
    if kind == "csv":
        table.to_csv(path, index=False, date_format="%Y-%m-%dT%H:%M:%S")
    elif kind == "sav":
        pyreadstat.write_sav(table, path, **named)
    elif kind == "zsav":
        pyreadstat.write_sav(table, path, compress=True, **named)
    elif kind == "por":
        pyreadstat.write_por(table, path)
    elif kind == "dta":
        pyreadstat.write_dta(table, path, **named)
    elif kind == "xpt":
        pyreadstat.write_xport(table, path)
    elif kind == "parquet":
        texts = pd.DataFrame({name: EXPECTED[name] for name in rows})
        pq.write_table(pa.Table.from_pandas(texts, preserve_index=False), path)
    elif kind == "jsonl":
        path.write_text(table.to_json(orient="records", lines=True, date_format="iso", date_unit="s"))
    else:
        lists = [list(rows), *zip(*rows.values(), strict=True)]
        if kind == "ods":
            open_document(path, lists)
        else:
            book = openpyxl.Workbook()
            for each in lists:
                book.active.append([None if entry == "" else entry for entry in each])
            book.save(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "sav", "zsav", "por", "dta", "xpt", "xlsx", "parquet", "ods", "jsonl"])
def test_one_table_is_read_alike_from_all_formats(tmp_path, suffix):
    without = {"ods": {"clock"}, "jsonl": {"clock", "day", "stamp"}}.get(suffix, set())
    rows = {name: entries for name, entries in ROWS.items() if name not in without}
    path = write(tmp_path / f"t.{suffix}", rows)
    table = read_table(path) if suffix == "parquet" else understood(path)[0]
    found = {name.lower(): entries for name, entries in plain(table).items()}
    expected = {name: entries for name, entries in EXPECTED.items() if name not in without}
    assert found == expected


@pytest.mark.parametrize("suffix", FILES)
def test_files_that_no_library_of_ours_writes_are_read_alike(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(gzip.decompress(base64.b85decode(FILES[suffix])))
    table, line = understood(path)
    assert plain(table) == {name: entries for name, entries in EXPECTED.items() if name != "clock"}
    assert ("marks such as .a are gaps in 'n'" in line) == (suffix in ("dta", "sas7bdat"))
    assert ("entries that SPSS counts as missing are gaps in 'n'" in line) == (suffix == "sav")


def test_a_binary_workbook_is_read_as_its_csv(tmp_path):
    cells = {0: {0: "id", 1: "age"}, 1: {0: "001", 1: 64.5}, 2: {0: "002", 1: 3.0}}
    binary_workbook(path := tmp_path / "t.xlsb", cells)
    table, line = understood(path)
    assert plain(table) == {"id": ["001", "002"], "age": [64.5, 3.0]}
    assert "Excel workbook" in line


CELLS = {0: {0: "title"}, 1: {0: "id", 1: "age", 2: "n"}, 2: {0: "001", 1: 64.5, 2: 1.0}, 3: {1: 3.0, 2: 2.0}}


def test_merged_cells_are_asked_about_in_all_workbooks(tmp_path):
    """A reader gives the first of the merged cells an entry, and the others gaps."""
    binary_workbook(path := tmp_path / "t.xlsb", CELLS, merged=(0, 0))
    assert list(understood(path)[0]) == ["id", "age", "n"]
    for merged in ((1, 1), (2, 3)):
        binary_workbook(path, CELLS, merged=merged)
        assert "merged cells in the table" in refusal(path, "TABLE_AMBIGUOUS")
    for kind in ("columns", "rows"):
        rows = [["id", "age", "n"], ["001", 64.5, 1], ["", 3.0, 2]]
        open_document(path := tmp_path / "t.ods", rows, cell=f'table:number-{kind}-spanned="1"')
        assert plain(understood(path)[0])["id"] == ["001", None]
        open_document(path, rows, cell=f'table:number-{kind}-spanned="2"')
        assert "merged cells in the table" in refusal(path, "TABLE_AMBIGUOUS")
        # Above the table they are a title.
        open_document(path, [["title", "", ""], *rows], cell=f'table:number-{kind}-spanned="2"')
        assert "header in line 2" in understood(path)[1]


def test_formulas_errors_and_hidden_rows_of_an_open_document_are_told_of(tmp_path):
    """A formula that no program has computed has no type, and would be a gap."""
    path = tmp_path / "t.ods"
    rows = [["a", "b"], [1, 2], [3, 4]]
    cases = {
        'table:formula="of:=1+1" ': "formulas without results",
        'office:value-type="string" calcext:value-type="error" ': "with an error count as empty",
        "": "hidden rows or columns are read",
    }
    for cell, words in cases.items():
        open_document(path, rows, row="" if cell else 'table:visibility="filter"')
        with zipfile.ZipFile(path) as packed:
            contents = {name: packed.read(name) for name in packed.namelist()}
        typed = b'<table:table-cell office:value-type="float" office:value="1" ><text:p>1</text:p>'
        assert contents["content.xml"].count(typed) == 1
        made = contents["content.xml"].replace(typed, f"<table:table-cell {cell}>".encode() if cell else typed)
        contents["content.xml"] = made.replace(b" xmlns:", b' xmlns:calcext="urn:calcext" xmlns:', 1)
        with zipfile.ZipFile(path, "w") as packed:
            for name, content in contents.items():
                packed.writestr(name, content)
        if words.startswith("formulas"):
            assert words in refusal(path, "TABLE_UNREADABLE")
        else:
            assert words in understood(path)[1]


def test_a_chart_in_a_workbook_is_no_table(tmp_path):
    binary_workbook(path := tmp_path / "t.xlsb", CELLS, chart=True)
    assert plain(understood(path)[0])["age"] == [64.5, 3.0]


def test_durations_are_written_alike_from_all_files(tmp_path):
    rows = [["t"], [datetime.timedelta(hours=30, minutes=5)], [datetime.time(1, 2, 3)]]
    book = openpyxl.Workbook()
    for each in rows:
        book.active.append(each)
    book.save(tmp_path / "t.xlsx")
    pyreadstat.write_sav(pd.DataFrame({"t": [108_300.0, 3723.0]}), tmp_path / "t.sav", variable_format={"t": "TIME8"})
    open_document(tmp_path / "t.ods", [["t"], ["PT30H05M00S"], ["01:02:03"]])
    for suffix in ("xlsx", "sav", "ods"):
        assert understood(tmp_path / f"t.{suffix}")[0]["t"].tolist() == ["30:05:00", "01:02:03"]


LOCKED = {
    "xlsx": "EncryptedPackage".encode("utf-16-le"),
    "xls": bytes.fromhex("09081000" + "00" * 16 + "2f00"),
}


@pytest.mark.parametrize("suffix", ["xlsx", "xls", "ods"])
def test_a_workbook_under_a_password_is_said_to_be_one(tmp_path, suffix):
    """Excel packs it into a file of its older kind; an old workbook and an OpenDocument table say so in themselves."""
    path = tmp_path / f"t.{suffix}"
    if suffix == "ods":
        open_document(path, [["a"], [1]])
        with zipfile.ZipFile(path, "a") as packed, pytest.warns(UserWarning, match="Duplicate name"):
            packed.writestr("META-INF/manifest.xml", "<manifest:encryption-data/>")
    else:
        path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(508) + LOCKED[suffix])
    assert "is protected by a password" in refusal(path, "TABLE_UNREADABLE")


def test_codes_of_which_all_have_labels_are_categories_and_others_stay_numbers(tmp_path):
    labels = {"sex": {1: "female", 2: "male", 9: "unknown"}, "n": {0: "none", 98: "refused"}}
    for suffix in ("sav", "zsav", "dta"):
        table, line = understood(write(tmp_path / f"t.{suffix}", labels=labels))
        assert table["sex"].tolist() == ["1", "2", "2", "1"]
        assert plain(table)["n"] == EXPECTED["n"]
        assert "'sex' is a category of codes: 1 = female, 2 = male, 9 = unknown" in line
        assert "'n' has numbers, and labels for some: 0 = none, 98 = refused" in line


def test_a_project_decides_of_codes_with_labels(tmp_path):
    sex = Column(name="sex", kind="category", categories=("1", "2"))
    n = Column(name="n", kind="number", minimum=0, maximum=9, missing="fill", fill=5)
    schema = Schema(columns=(sex, n))
    path = write(tmp_path / "t.sav", labels=SEX | {"n": {0: "a", 1: "b", 3: "c"}})
    table, _ = understood(path, schema=schema)
    expected = [[1, 0, 1], [0, 1, 0], [0, 1, 5], [1, 0, 3]]
    assert encode_table(schema, table, where="x", with_target=False).X.tolist() == expected


def test_entries_that_spss_counts_as_missing_are_gaps(tmp_path):
    rows = {"a": [1.0, 98, 99, 7], "b": [-5.0, 0, 1, 4], "c": ["x", "?", "y", ""]}
    ranges = {"a": [98, 99], "b": [{"lo": -math.inf, "hi": -1}, 4], "c": ["?"]}
    for suffix in ("sav", "zsav"):
        path = tmp_path / f"t.{suffix}"
        pyreadstat.write_sav(frame(rows), path, missing_ranges=ranges, compress=suffix == "zsav")
        table, line = understood(path)
        assert plain(table) == {"a": [1, None, None, 7], "b": [None, 0, 1, None], "c": ["x", None, "y", None]}
        assert "entries that SPSS counts as missing are gaps in 'a', 'b', 'c'" in line


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_texts_of_nothing_but_blanks_are_gaps(tmp_path, suffix):
    table = pd.DataFrame({"ward": ["north", "  ", "south", ""]})
    getattr(pyreadstat, {".xpt": "write_xport"}.get(suffix, f"write_{suffix[1:]}"))(table, str(tmp_path / f"t{suffix}"))
    assert read_table(tmp_path / f"t{suffix}")["ward"].isna().tolist() == [False, True, False, True]


def test_marks_of_gaps_are_gaps_in_files_of_stata(tmp_path):
    """In whole numbers too, where a reader makes 0 of a plain gap behind a mark."""
    table = pd.DataFrame({"x": pd.Series(["a", 1, None, 3], dtype=object), "y": [1.5, None, 2.0, 3.0]})
    pyreadstat.write_dta(table, path := tmp_path / "t.dta", missing_user_values={"x": ["a"]})
    found, line = understood(path)
    assert plain(found) == {"x": [None, 1, None, 3], "y": [1.5, None, 2, 3]}
    assert "marks such as .a are gaps in 'x'" in line


def test_marks_of_gaps_and_zeros_in_a_file_of_transport(tmp_path):
    """SAS marks a gap by its letter in the first byte, and writes zero as eight bytes of 0."""
    table = pd.DataFrame({"x": [7.0, 2.0, 3.0, 0.0], "y": [1.0] * 4})
    pyreadstat.write_xport(table, path := tmp_path / "t.xpt", file_format_version=5)
    data = path.read_bytes()
    seven, two, three = (bytes([0x41, digit << 4]) + bytes(6) for digit in (7, 2, 3))
    for number, mark in ((seven, b"A"), (two, b"_"), (three, b".")):
        assert data.count(number) == 1
        data = data.replace(number, mark + bytes(7))
    path.write_bytes(data)
    assert plain(understood(path)[0])["x"] == [None, None, None, 0]


STYLES = [
    ("dta", "%tdDD/NN/CCYY", 21915, "2020-01-01"),
    ("dta", "%d", -1, "1959-12-31"),
    ("dta", "%tm", 722, "2020m3"),
    ("dta", "%tq", -1, "1959q4"),
    ("dta", "%tw", 52, "1961w1"),
    ("dta", "%th", 1, "1960h2"),
    ("dta", "%tc", 1_893_456_000_500.0, "2020-01-01T00:00:00.500000"),
    ("dta", "%tcHH:MM:SS", 3_723_000.0, "01:02:03"),
    ("dta", "%tcHH:MM", 1_893_456_060_000.0, "2020-01-01T00:01:00"),
    ("dta", "%tC", 1_479_596_223_000.0, "2006-11-19T22:56:40"),
    ("dta", "%tC", 1_798_848_027_000.0, "2017-01-01"),
    ("dta", "%tC", -1000.0, "1959-12-31T23:59:59"),
    ("dta", "%9.0g", 21915, 21915),
    ("sav", "MOYR8", 13_797_216_000.0, "2020-01-01"),
    ("sav", "QYR6", 13_797_216_000.0, "2020-01-01"),
    ("sav", "EDATE10", 13_797_302_400.0, "2020-01-02"),
    ("sav", "DTIME12", 93_784.0, "26:03:04"),
    ("sav", "F8.2", 13.5, 13.5),
    ("xpt", "MONYY7", 21915.0, "2020-01-01"),
    ("xpt", "YEAR4", 21915.0, "2020-01-01"),
    ("xpt", "MMDDYY10", 21915.0, "2020-01-01"),
    ("xpt", "E8601DT", 3.0, "1960-01-01T00:00:03"),
    ("xpt", "MMSS", 63.0, "00:01:03"),
    ("xpt", "NLTIME", 63.0, "00:01:03"),
    ("xpt", "TOD", 63.0, "00:01:03"),
    ("xpt", "TOD", 86_463.0, "1960-01-02T00:01:03"),
    ("xpt", "EURDFDT", 3.0, "1960-01-01T00:00:03"),
    ("xpt", "DEUDFDD", 21915.0, "2020-01-01"),
    ("xpt", "PDJULG", 21915.0, "2020-01-01"),
    ("xpt", "YYWEEKU", 21915.0, "2020-01-01"),
    ("xpt", "NENGO", 21915.0, "2020-01-01"),
    ("xpt", "BEST12", 21915.0, 21915),
]


@pytest.mark.parametrize(("suffix", "style", "number", "expected"), STYLES)
def test_dates_are_dates_whatever_a_program_shows_of_them(tmp_path, suffix, style, number, expected):
    """A number of days since 1960 must not be learnt from, even where a format shows the year alone."""
    path = tmp_path / f"t.{suffix}"
    writer = {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}[suffix]
    writer(pd.DataFrame({"x": [float(number)], "y": [1.0]}), path, variable_format={"x": style})
    assert understood(path)[0]["x"].tolist() == [expected]


def test_a_business_calendar_and_a_date_after_9999_are_refused(tmp_path):
    no_dates = [("%tbnyse", 9e6, "business calendar")]
    no_dates += [("%td", number, "outside the years 1 to 9999") for number in (9e6, -9e6)]
    only_y = Schema(columns=(Column(name="y", kind="number", minimum=0, maximum=9),))
    for style, number, words in no_dates:
        path = tmp_path / "t.dta"
        pyreadstat.write_dta(pd.DataFrame({"x": [number], "y": [1.0]}), path, variable_format={"x": style})
        assert words in refusal(path, "TABLE_UNREADABLE")
        # A project that does without the column is not stopped by it.
        assert understood(path, schema=only_y)[0]["y"].tolist() == [1.0]
        # In another form of Unicode the name of a column is the same.
        pyreadstat.write_dta(pd.DataFrame({"a\u0308": [number]}), path, variable_format={"a\u0308": style})
        column = Column(name="\u00e4", kind="number", minimum=0, maximum=9, missing="fill", fill=1)
        assert words in refusal(path, "TABLE_UNREADABLE", schema=Schema(columns=(column,)))


def test_texts_with_labels_for_some_are_not_called_numbers(tmp_path):
    rows = frame({"sex": ["f", "m", "x"]})
    pyreadstat.write_sav(rows, path := tmp_path / "t.sav", variable_value_labels={"sex": {"f": "female"}})
    assert "'sex' has texts, and labels for some: f = female" in understood(path)[1]


def test_labels_in_a_catalog_of_sas_are_said_not_to_be_read(tmp_path):
    path = tmp_path / "t.sas7bdat"
    path.write_bytes(gzip.decompress(base64.b85decode(FILES["sas7bdat"])))
    assert "are not read" not in understood(path)[1]
    (tmp_path / "formats.sas7bcat").touch()
    assert "labels in formats.sas7bcat are not read" in understood(path)[1]


@pytest.mark.parametrize("version", [5, 8])
def test_a_transport_file_that_was_cut_off_or_holds_two_tables_is_refused(tmp_path, version):
    """It has no end: the reader takes what is left for all, and the header of another table for rows."""
    table = pd.DataFrame({"id": [f"P{row}" for row in range(99)], "x": np.arange(99) / 8})
    pyreadstat.write_xport(table, path := tmp_path / "t.xpt", file_format_version=version)
    assert len(understood(path)[0]) == 99
    data = path.read_bytes()
    for n_bytes in (len(data) - 1, len(data) - 80, len(data) - 800):
        path.write_bytes(data[:n_bytes])
        assert "was cut off" in refusal(path, "TABLE_UNREADABLE")
    path.write_bytes(data + data[240:])
    assert "has 2 tables: 'DATASET', 'DATASET'" in refusal(path, "TABLE_AMBIGUOUS")
    # The same letters may be an entry.
    table["id"] = ["HEADER RECORD*******MEMBER"] * 99
    pyreadstat.write_xport(table, path, file_format_version=version)
    assert len(understood(path)[0]) == 99


def weighted_sav(path, place):
    data = path.read_bytes()
    path.write_bytes(data[:76] + struct.pack("<i", place) + data[80:])


def test_a_weight_of_rows_is_named_and_refused(tmp_path):
    """By the place in SPSS's dictionary: a text of up to eight letters takes one, and a longer one several."""
    rows = {"name": ["a" * 20, "b"], "age": [1.0, 2.0], "Gewicht": [2.0, 1.0]}
    path = tmp_path / "t.sav"
    pyreadstat.write_sav(frame(rows), path, column_labels={"age": "years"}, missing_ranges={"age": [98, 99]})
    assert list(understood(path)[0]) == list(rows)
    weighted_sav(path, 5)
    assert "weights for its rows, in column 'Gewicht'" in refusal(path, "TABLE_AMBIGUOUS")
    assert "WEIGHT OFF" in refusal(path, "TABLE_AMBIGUOUS")


def test_a_weight_and_missing_entries_of_a_portable_file(tmp_path):
    """Records of SPSS's portable file: 6 has the weight, 8 an entry that counts as missing."""
    path = tmp_path / "t.por"
    pyreadstat.write_por(pd.DataFrame({"X": [1.0, 9.0], "W": [2.0, 1.0]}), path)
    text = path.read_bytes().decode("ascii").replace("\r\n", "").replace("\n", "")

    def save(text):
        path.write_text("\r\n".join(text[start : start + 80] for start in range(0, len(text), 80)) + "\r\n")

    first, second = (place for place in range(len(text)) if text.startswith("70/", place))
    save(text[:first] + "61/W" + text[first:])
    assert "in column 'W'" in refusal(path, "TABLE_AMBIGUOUS")
    save(text[:second] + "89/" + text[second:])
    assert plain(understood(path)[0])["X"] == [1, None]


def test_a_float_of_stata_is_the_number_that_was_typed(tmp_path):
    table = pd.DataFrame({"x": np.array([0.1, 2.5], dtype=np.float32)})
    table.to_stata(path := tmp_path / "t.dta", write_index=False)
    assert understood(path)[0]["x"].tolist() == [0.1, 2.5]


def test_long_numbers_are_told_apart(tmp_path):
    numbers = [2.0**53 - 1, 2.0**53 - 2]
    pyreadstat.write_sav(pd.DataFrame({"id": numbers}), path := tmp_path / "t.sav")
    assert understood(path)[0]["id"].tolist() == ["9007199254740991", "9007199254740990"]


@pytest.mark.parametrize("suffix", ["sav", "zsav", "por", "dta", "xpt"])
def test_damaged_files_are_refused(tmp_path, suffix):
    path = write(tmp_path / f"t.{suffix}")
    data = path.read_bytes()
    for damaged in (b"", b"Anna Huber" * 40, data[: len(data) // 3]):
        path.write_bytes(damaged)
        assert "Huber" not in refusal(path, "TABLE_UNREADABLE")


@pytest.mark.parametrize("suffix", ["sav", "zsav", "dta", "sas7bdat"])
def test_a_file_that_was_cut_off_is_refused(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    if suffix == "sas7bdat":
        path.write_bytes(gzip.decompress(base64.b85decode(FILES[suffix])))
    else:
        write(path)
    path.write_bytes(path.read_bytes()[:-80])
    refusal(path, "TABLE_UNREADABLE")


@pytest.mark.parametrize("suffix", ["sav", "por", "dta", "xpt"])
def test_large_files_are_read_in_parts(tmp_path, suffix, monkeypatch):
    """Parts of two rows, and a number of rows that they divide."""
    monkeypatch.setattr("datacollab.table._statistics._AT_ONCE", 800)
    path = write(tmp_path / f"t.{suffix}")
    found = {name.lower(): entries for name, entries in plain(understood(path)[0]).items()}
    assert found == EXPECTED


def test_a_table_without_rows_is_one_empty_batch(tmp_path):
    for suffix in ("sav", "dta", "xpt"):
        writer = {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}[suffix]
        table = pd.DataFrame({"x": pd.Series([], dtype=float), "t": pd.Series([], dtype=str)})
        writer(table, path := tmp_path / f"t.{suffix}")
        (batch,) = table_batches(path)
        assert (list(batch), len(batch)) == (["x", "t"], 0)


def test_files_that_ask_for_much_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("datacollab.table._limits._LEAST_MEMORY", 10_000)
    monkeypatch.setattr("datacollab.table._limits._MOST_UNPACKED", 1)
    repeats = {"cell": 'table:number-columns-repeated="9"', "row": 'table:number-rows-repeated="99999"'}
    open_document(ods := tmp_path / "t.ods", [["a", "b"], [1, 2]], **repeats)
    binary_workbook(xlsb := tmp_path / "t.xlsb", {0: {0: "a"}, 1_048_575: {16_383: 1.0}})
    pyreadstat.write_sav(pd.DataFrame({"x": np.zeros(200_000)}), sav := tmp_path / "t.zsav", compress=True)
    # Before a library fills the memory.
    monkeypatch.setattr("python_calamine.CalamineWorkbook", None)
    for path in (ods, xlsb, sav):
        assert "would take at least" in refusal(path, "TOO_LARGE")


def test_files_of_statistics_programs_are_not_written(tmp_path):
    with pytest.raises(ExchangeError, match=r"ends in '.sav'; name it with one of .csv, .xlsx, .parquet") as caught:
        write_table(tmp_path / "t.sav", [frame()])
    assert caught.value.code == "TABLE_UNREADABLE"


@pytest.mark.parametrize(("suffix", "ending"), [("sav", ".sav"), ("dta", ".dta"), ("xpt", ".xpt")])
def test_a_file_under_another_name_is_told_its_own(tmp_path, suffix, ending):
    path = write(tmp_path / f"t.{suffix}").rename(tmp_path / "t.csv")
    assert f"Let its name end in {ending}" in refusal(path, "TABLE_UNREADABLE")


WHOLE = st.lists(st.none() | st.integers(-99, 99), min_size=4, max_size=4)
DECIMALS = st.lists(st.none() | st.integers(-999, 9999).map(lambda each: each / 8), min_size=4, max_size=4)
TEXTS = st.lists(st.sampled_from(["001", "NA", "x y", "", "7", "é", "1E30"]), min_size=4, max_size=4)
DAYS = st.lists(st.none() | st.dates(DAY(1900, 1, 1), DAY(2100, 1, 1)), min_size=4, max_size=4)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
@given(
    whole=WHOLE, decimals=DECIMALS, texts=TEXTS, days=DAYS, is_labelled=st.booleans(),
    suffix=st.sampled_from(["sav", "zsav", "dta", "xpt", "xlsx", "ods", "jsonl"]),
)  # fmt: skip
def test_what_a_csv_file_holds_is_read_alike_from_others(tmp_path, whole, decimals, texts, days, is_labelled, suffix):
    # A column of text without any has no width, which not every format can hold.
    rows = {"whole": whole, "decimals": decimals, "texts": [*texts, "z"], "days": days, "last": list("abcde")}
    rows = {name: [*entries, None][:5] for name, entries in rows.items()}
    if suffix == "jsonl":
        rows["days"] = [each and each.isoformat() for each in rows["days"]]
    is_labelled &= suffix in ("sav", "zsav", "dta")
    labels = {"whole": {each: f"label {each}" for each in set(whole) - {None}}} if is_labelled else {}
    expected = plain(read_table(write(tmp_path / "expected.csv", rows)))
    if is_labelled and labels["whole"]:
        expected["whole"] = [each if each is None else str(int(each)) for each in expected["whole"]]
    table = frame(rows)
    for name in ("whole", "decimals"):
        table[name] = table[name].astype(float)
    if suffix in ("sav", "zsav", "dta", "xpt"):
        writer = {"dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}.get(suffix, pyreadstat.write_sav)
        numbers = {name: {float(code): label for code, label in each.items()} for name, each in labels.items() if each}
        more = {} if suffix == "xpt" else {"variable_value_labels": numbers}
        writer(table, path := tmp_path / f"t.{suffix}", **more)
    else:
        path = write(tmp_path / f"t.{suffix}", rows)
    assert plain(read_table(path)) == expected
