"""A comparison in words."""

from ._comparison import Comparison
from ._methods import BASELINES


def verdicts(comparison: Comparison) -> list[str]:
    """Say in words how the methods stand to Local and Central, claiming only what the intervals support."""
    collaborating = [name for name in comparison.methods if name not in BASELINES]
    sentences = []
    if "Local" in comparison.methods and collaborating:
        better = [name for name in collaborating if _is_clear(comparison.gain(name, "Local"))]
        worse = [name for name in collaborating if _is_clear(comparison.gain(name, "Local"), sign=-1)]
        open_ = [name for name in collaborating if name not in better and name not in worse]
        for names, verb in ((better, "better than Local"), (worse, "worse than Local")):
            if names:
                sentences.append(f"{_join(names)}: {verb}, beyond chance at the 95 % level.")
        if open_:
            sentences.append(f"{_join(open_)}: not told apart from Local by these trials.")
    if collaborating:
        sign = 1 if comparison.task == "classification" else -1
        best = max(collaborating, key=lambda name: sign * comparison.interval(name)[0])
        mean = comparison.interval(best)[0]
        sentence = f"Highest mean: {best}" if sign == 1 else f"Lowest mean: {best}"
        sentence += f", {comparison.measure} {_number(mean)}"
        if "Central" in comparison.methods:
            sentence += f"; Central, which no party may build, has {_number(comparison.interval('Central')[0])}"
        sentences.append(f"{sentence}.")
        # The honest rival: a party that uses the public rows without collaborating.
        if "Local+Public" in comparison.methods:
            stands = _standing(comparison.gain(best, "Local+Public"))
            sentences.append(
                f"{best} is {stands} Local+Public ({_number(comparison.interval('Local+Public')[0])}), a party alone "
                "that also trains on the real public rows behind the anchor and their targets."
            )
    return sentences


def _standing(gain: tuple[float, float]) -> str:
    if _is_clear(gain):
        return "better than"
    if _is_clear(gain, sign=-1):
        return "worse than"
    return "not told apart from"


def _is_clear(gain: tuple[float, float], sign: int = 1) -> bool:
    mean, half_width = gain
    # Without an interval, of one trial, this compares with NaN and is False.
    return sign * mean > half_width


def _join(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return ", ".join(names[:-1]) + " and " + names[-1]


def _number(value: float) -> str:
    if abs(value) < 10:
        return f"{value:.3f}"
    return f"{value:.2f}"
