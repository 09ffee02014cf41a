"""Write a report: tables, figures, rows, and a page that shows them all."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..claims import check_claims
from ..paper import Row
from ._cells import slug
from ._claims_text import claims_markdown
from ._drawing import Plot, render_figure
from ._figures import result_figures
from ._page import report_page
from ._picture import Picture, picture_figure
from ._records import canonical, scores_csv, seconds_csv
from ._render import to_csv, to_markdown
from ._tables import TIME_FIGURES, result_tables


def write_report(
    rows: Mapping[str, Sequence[Row]],
    output: Path,
    *,
    title: str,
    command: str,
    notes: Sequence[str] = (),
    pictures: Sequence[Picture] = (),
    illustrations: Sequence[Plot] = (),
) -> list[Path]:
    """Write results of experiments as tables, figures and one page, and return the files.

    Any part of the experiments will do.  But for ``index.html`` and files with "seconds" in their name, equal rows give
    equal bytes, in whatever order they come.

    Raises
    ------
    ValueError
        When rows of one experiment cannot be told apart by the columns of its tables, before anything is written.
    MissingExtraError
        When matplotlib is not installed, before anything is written.
    """
    ordered = canonical(rows)
    presets = sorted({row.condition.hyperparameters for part in ordered.values() for row in part})
    verdicts = {preset: check_claims(ordered, preset) for preset in presets}
    tables = result_tables(ordered)
    plots = [*result_figures(ordered), *_plots_of(pictures), *illustrations]
    drawn = {plot.name: render_figure(plot.figure, "svg") for plot in plots}

    files = {Path("rows.csv"): scores_csv(ordered), Path("seconds.csv"): seconds_csv(ordered)}
    for table in tables:
        for suffix, render in ((".md", to_markdown), (".csv", to_csv)):
            files[Path("tables", f"{table.name}{suffix}")] = render(table)
    for name, measured in (("claims", False), ("claims_seconds", True)):
        part = {preset: [each for each in found if (each.claim.source in TIME_FIGURES.values()) == measured]
                for preset, found in verdicts.items()}  # fmt: skip
        if any(part.values()):
            files[Path("tables", f"{name}.md")] = claims_markdown(part)
    written = {path: text.encode() for path, text in files.items()}
    for plot in plots:
        written[Path("figures", f"{plot.name}.svg")] = drawn[plot.name]
        written[Path("figures", f"{plot.name}.png")] = render_figure(plot.figure, "png")
    page = report_page(ordered, tables, plots, drawn, verdicts, title=title, command=command, notes=notes)
    written[Path("index.html")] = page.encode()

    # All is rendered before anything is written, so that an error leaves no half report.
    for path, content in written.items():
        (output / path).parent.mkdir(parents=True, exist_ok=True)
        (output / path).write_bytes(content)
    return [output / path for path in sorted(written)]


def _plots_of(pictures: Sequence[Picture]) -> list[Plot]:
    plots: list[Plot] = []
    for number, picture in enumerate(pictures, start=1):
        name = f"picture-{number}_{slug(picture.title)}"
        plots.append(Plot(name, "rq4", f"{picture.title}.", picture_figure(picture)))
    return plots
