"""What was tried, and how it scored on rows left out."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

__all__ = ["Candidate", "Selection"]

_JUDGED_ON = {
    "rows": "the parties' rows, each left out",
    "anchor": "the anchor's rows, each left out, for the parties' rows were changed by defences",
    "groups": "the parties' rows as defences changed them, equal ones left out together; the scores may flatter",
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An integration method, a weight of the anchor's rows and a model, and how they did; or an average of such.

    Attributes
    ----------
    integrator, model : str
    anchor_weight : float
        Of an anchor row beside a party's row in the training of h; of an average the mean.
    alpha : float or None
        The ridge penalty, chosen on rows left out, where the model has one.
    loss : float
        Mean over the rows left out; not a number where the candidate was not tried.
    standard_error : float
        Of that mean.
    difference_low, difference_high : float
        95 % interval of the loss minus that of the chosen candidate, row by row.
    seconds : float
    chosen : bool
    part : float
        Of the chosen average, where it was averaged; from 0 to 1.
    failure : str or None
        Why it was not tried or could not be fitted.
    """

    integrator: str
    model: str = ""
    anchor_weight: float = 0.0
    alpha: float | None = None
    loss: float = math.nan
    standard_error: float = math.nan
    difference_low: float = math.nan
    difference_high: float = math.nan
    seconds: float = 0.0
    chosen: bool = False
    part: float = 0.0
    failure: str | None = None

    def compared(self, low: float, high: float, chosen: bool, part: float) -> Self:
        """The same beside the chosen one."""
        return replace(self, difference_low=float(low), difference_high=float(high), chosen=chosen, part=float(part))


@dataclass(frozen=True, kw_only=True)
class Selection:
    """All candidates of a choice.

    Attributes
    ----------
    candidates : tuple of Candidate
        In the order in which they were tried, simple ones first.
    metric : {"log loss", "squared error"}
    judged_on : {"rows", "anchor", "groups"}
        What the losses are of: the parties' rows; the anchor's, where the shared rows are not the parties' own; or
        changed rows, where there is nothing else.
    n_judges : int
        Rows that judged.
    """

    candidates: tuple[Candidate, ...]
    metric: str
    judged_on: str
    n_judges: int

    @property
    def caution(self) -> str:
        """What to know before scores on the rows left out are believed; empty where these are the parties' own."""
        if self.judged_on == "rows":
            return ""
        return (
            "These rows are not the parties' own as they are, and their labels may be what models at the parties "
            "named. Expect less at the parties, and go by what each one finds on its own rows."
        )

    @property
    def chosen(self) -> Candidate:
        """The candidate that was taken."""
        return next(candidate for candidate in self.candidates if candidate.chosen)

    def ranked(self) -> list[Candidate]:
        """Candidates that were tried, from the smallest loss on."""
        return sorted((each for each in self.candidates if each.failure is None), key=lambda each: each.loss)

    def to_frame(self) -> Any:
        """All candidates as a pandas data frame, a row each (needs pandas)."""
        from .._validation import require

        return require("pandas", "cli").DataFrame([asdict(candidate) for candidate in self.candidates])

    def table(self, most: int = 10) -> str:
        """The best candidates as text, the chosen one marked."""
        lines = [f"{self.metric} on {self.n_judges} rows: {_JUDGED_ON[self.judged_on]}"]
        for each in self.ranked()[:most]:
            mark = "*" if each.chosen else " "
            alpha = "" if each.alpha is None else f", penalty {each.alpha:g}"
            what = f"{each.integrator}, {each.model}{alpha}, anchor rows × {each.anchor_weight:.2g}"
            what += f", {each.part:.0%} of the average" if each.part else ""
            interval = "" if each.chosen else f"  ({each.difference_low:+.4f} to {each.difference_high:+.4f})"
            lines.append(f" {mark} {each.loss:.4f} ± {each.standard_error:.4f}  {what}{interval}")
        if self.judged_on != "rows" and self.ranked()[0].loss < self.chosen.loss:
            lines.append(
                " The simpler one (*) was taken: rows that were made between others flatter what follows them closely, "
                "so a more complicated one has to have a loss that is 25 % smaller."
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()
