"""A progress bar in a notebook or at a terminal."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any, Self

from ._require import require

__all__ = ["ProgressBar"]

_COUNTED = "|{bar}| {n_fmt}/{total_fmt} [{elapsed}, {remaining} left] {desc}"
_UNCOUNTED = "[{elapsed}] {desc}"


class ProgressBar:
    """A bar for parameters ``progress=``: the current step, how much is done, and the time left.

    It is drawn by tqdm (``pip install 'datacollab[progress]'``), as a widget in a notebook that has ipywidgets, and as
    a line of text elsewhere.  Leaving the ``with`` block ends the bar.

    Parameters
    ----------
    n_steps : int, optional
        How many there will be.  `Analyst` and ``PartyFolder.explain`` say so themselves; with others, such as `audit`,
        the bar shows the time left if this is given, and the time gone if it is not.

    Raises
    ------
    MissingExtraError
        If tqdm is not installed.

    Examples
    --------
    >>> import datacollab as dc
    >>> with dc.ProgressBar(n_steps=2) as progress:
    ...     progress("aligning")
    ...     progress("training")
    """

    def __init__(self, n_steps: int | None = None) -> None:
        require("tqdm", "progress")
        self.n_steps = n_steps
        self._bar: Any = None
        self._n_begun = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            # A step is shown as it begins, so the last one is done only now; after an error it is not.
            if kind is None and self._bar.total is not None:
                self._bar.n = self._bar.total
                self._bar.refresh()
            self._bar.close()
        self._bar = None
        self._n_begun = 0

    def __call__(self, *said: Any) -> None:
        """Show a step that begins: its name, or how many are done, how many there are, and its name."""
        *numbers, step = said
        if not isinstance(step, str):
            numbers.append(step)
            step = ""
        done = self._n_begun
        total = self.n_steps
        # `Analyst` counts for itself, and `choose` tells names alone.
        if len(numbers) == 2:
            done, total = numbers
        self._n_begun += 1
        if self._bar is None:
            kind = _tqdm()
            # Without a number of steps there is no share to be drawn.
            shape = _COUNTED if total else _UNCOUNTED
            if not _is_widget(kind):
                # A widget draws the bar itself, and takes one of a certain width for text.
                shape = shape.replace("{bar}", "{bar:20}")
            # With a delay, however short, it is first drawn when there is something to say.
            self._bar = kind(bar_format=shape, total=total, delay=1e-9)
        self._bar.total = total
        self._bar.n = done
        self._bar.set_description_str(str(step), refresh=False)
        self._bar.refresh()


def _tqdm() -> Any:
    """Return the kind of bar for this place: a widget in a notebook that has ipywidgets, a line of text elsewhere."""
    with warnings.catch_warnings():
        # A notebook without widgets shows text, about which there is nothing to be done.
        warnings.filterwarnings("ignore", message="IProgress not found")
        return require("tqdm.auto", "progress").tqdm


def _is_widget(kind: type[Any]) -> bool:
    return any(each.__module__ == "tqdm.notebook" for each in kind.__mro__)
