"""What columns do in the analyst's model, computed in the party's folder: nothing leaves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from ...errors import AgreementError, DataCollabError, ExchangeError, UnidentifiedColumnsWarning
from ...party import ColumnEffects
from ..project import encode_table, read_table, table_format, write_table
from ._contributions import (
    ANSWER,
    BASE,
    OUTPUT,
    ROW,
    Explained,
    check_figure,
    columns_of_matrix,
    contribution_names,
    entries_of,
    number_effects,
    one_output,
)
from ._learning import Learning
from ._prediction_file import check_output
from ._sides import CommonSide

__all__ = ["Explaining"]


class Explaining(Learning):
    """What a party asks of the installed model about its own columns."""

    def explain(
        self,
        source: Path,
        output: Path,
        *,
        of_class: str | None = None,
        most_rows: int = 100,
        keep: Sequence[str] = (),
        log_odds: bool = False,
        n_background: int = 100,
        n_permutations: int | None = None,
        random_state: int | None = 0,
        figure: Path | None = None,
        force: bool = False,
        progress: Callable[[int, int], None] = lambda done, n_rows: None,
    ) -> Explained:
        """Write what each column adds to the model's answers for rows of a table, into a file closed to others.

        The model is the collaboration's, h(g_k(f_k(x))), without the party's own models; masked columns are taken from
        the anchor, which is the same at every party.  See `datacollab.Party.explain`.

        Parameters
        ----------
        source : Path
            CSV, Parquet or Arrow; it needs no target.
        output : Path
            CSV, Parquet or Arrow, by its name.  Has the columns "row" (its position, from 1), those of `keep`, "class"
            where the model gives probabilities, "base_value" (the mean answer over the anchor), "answer", and
            "contribution_NAME" of each column of the project; these and the base value add up to the answer.
        of_class : str, optional
            Class whose probability is explained; by default the second of two, and otherwise all.
        most_rows : int, default=100
            Of a longer table so many are explained, evenly spaced.
        keep : sequence of str, default=()
            Columns of the table to be put beside the position, such as an identifier.
        log_odds : bool, default=False
            Whether log odds are explained in place of probabilities.
        n_background, n_permutations, random_state
            As in `datacollab.Party.explain`.
        figure : Path, optional
            PNG, PDF or SVG, by its name, of the most important columns.
        force : bool, default=False
            Whether files that hold something else may be replaced.
        progress : callable, optional
            Called with the number of rows that are done, and of all, after each.

        Returns
        -------
        Explained

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED, WRONG_SHARE, ALREADY_THERE, MODEL_MALFORMED, or of the kind "schema".
        AgreementError
            When answers of the model are no numbers to be explained, or the table has no rows.
        NumericalError
            When log odds are wanted of a probability of 0 or 1.
        ValueError
            When a parameter is not what it has to be.
        FileNotFoundError
            When there is no folder for a file.

        Notes
        -----
        Leaves the party: nothing.  Contributions tell of the rows that they are of, and a figure shows their entries by
        colours: treat both like the table.
        """
        source, output = Path(source), Path(output)
        for name, value in (("most_rows", most_rows), ("n_background", n_background)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1; got {value!r}.")
        table_format(output)
        check_output(output, source, force=force, what="explanations", column=BASE)
        if figure is not None:
            check_figure(Path(figure), (source, output), force=force)
        side = self._common()
        _check_outputs(side, of_class, log_odds, figure, self.project.task.kind)
        table = read_table(source, project=self.project)
        self._check_kept(keep, list(table.columns), source)
        encoded = encode_table(self.project, table, where=str(source), with_target=False)
        if not encoded.n_rows:
            raise AgreementError(f"{source} has no rows to explain.")
        n_rows = min(most_rows, encoded.n_rows)
        chosen = np.linspace(0, encoded.n_rows - 1, n_rows).round().astype(np.intp)
        done = count(1)
        anchor = self.anchor.rows
        try:
            with warnings.catch_warnings():
                # Which columns these are is in the result.
                warnings.simplefilter("ignore", UnidentifiedColumnsWarning)
                found = side.party.explain(
                    encoded.X[chosen],
                    side.model,
                    background=anchor,
                    columns=columns_of_matrix(self.project),
                    output="log-odds" if log_odds else "auto",
                    n_permutations=n_permutations,
                    n_background=n_background,
                    random_state=random_state,
                    progress=lambda _: progress(next(done), n_rows),
                )
        except DataCollabError:
            raise
        # A model that was tampered with may fail in any way, and with words that quote the rows.
        except Exception as error:
            raise ExchangeError(
                "MODEL_MALFORMED",
                f"The model {side.name} fails on rows of {source} and the anchor ({type(error).__name__}). Do not use "
                "it, and ask the analyst.",
            ) from None
        named = replace(found, data=entries_of(self.project, encoded.X[chosen]))
        result = Explained(
            explanation=one_output(named, of_class),
            rows=chosen + 1,
            n_rows=encoded.n_rows,
            model=side.name,
            adjusted=encoded.adjusted.to_dict(),
        )
        write_table(output, [result.frame(table.iloc[chosen][list(keep)])], mode=0o600)
        if figure is not None:
            result.save_figure(Path(figure))
        self.record("explain", file=source.name, n_rows=n_rows)
        return result

    def column_effects(self, *, scale: str = "sd", confidence: float = 0.95) -> ColumnEffects:
        """What a step of each column of numbers changes on average, where the model is linear with its covariance.

        See `datacollab.Party.column_effects`, also for what is assumed.  Columns that the representation does not tell
        are refused, and categories, whose columns of zeros and ones cannot change one by one.

        Parameters
        ----------
        scale : {"sd", "unit"}, default="sd"
            Steps: a standard deviation over the anchor, or a unit of the column.
        confidence : float, default=0.95

        Returns
        -------
        ColumnEffects
            Of all columns of the project, by their names.

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED or WRONG_SHARE.
        AgreementError
            When the model has no covariance, or the project no column of numbers.

        Notes
        -----
        Leaves the party: nothing.
        """
        places = columns_of_matrix(self.project)
        numbers = [places[column.name][0] for column in self.project.columns if column.kind == "number"]
        if not numbers:
            raise AgreementError(f"Project {self.project.name!r} has no columns of numbers to move a step.")
        side = self._common()
        found = side.party.column_effects(
            self.anchor.rows, side.model, columns=numbers, scale=scale, confidence=confidence
        )
        self.record("column-effects", n_shown=int(found.identified.sum()))
        return number_effects(self.project, found)

    @property
    def shared_defences(self) -> tuple[str, ...]:
        """What the party's last share was defended by; standard errors of effects know nothing of it."""
        digest = self._logged_share()
        (facts,) = [
            entry["facts"]
            for entry in self.log.entries()
            if entry["event"] == "share" and entry["facts"].get("digest") == digest
        ]
        return tuple(facts.get("defences", ()))

    def _common(self) -> CommonSide:
        side = self._at_home().side("collaboration")
        assert isinstance(side, CommonSide)
        return side

    def _check_kept(self, keep: Sequence[str], columns: list[str], source: Path) -> None:
        if lacking := [name for name in keep if name not in columns]:
            raise ExchangeError(
                "SCHEMA_MISSING_COLUMN",
                f"{source} has no column {', '.join(map(repr, lacking))} to keep. Give the names of columns in the "
                "file's header.",
            )
        taken = {ROW, OUTPUT, BASE, ANSWER, *contribution_names([column.name for column in self.project.columns])}
        if clashing := sorted(taken & set(keep)) or sorted(name for name in keep if keep.count(name) > 1):
            raise ValueError(
                f"{source}: the columns {clashing} would be written twice. Rename them, or do not keep them."
            )


def _check_outputs(side: CommonSide, of_class: str | None, log_odds: bool, figure: Path | None, kind: str) -> None:
    """Refuse what the model has no answers for, before any work is done."""
    if side.classes is None:
        if of_class is not None or log_odds:
            raise ValueError(f"The model {side.name} gives no probabilities. Leave out the class and log odds.")
        if kind in ("classification", "none"):
            raise AgreementError(
                f"The model {side.name} names classes without probabilities, which cannot be added. Ask the analyst "
                "for a model that has them."
            )
        return
    names = [str(each) for each in side.classes]
    if of_class is not None and of_class not in names:
        raise ValueError(f"The model knows the classes {', '.join(names)}; got {of_class!r}.")
    if figure is not None and of_class is None and len(names) != 2:
        raise ValueError(f"A figure is of one class: name one of {', '.join(names)}.")
