"""Tables, conditions and presets, fixed before anything was run on these tables."""

from dataclasses import dataclass

from ..pays.settings import Setting, Split

# To be raised whenever the same method and setting would give other scores.
PROTOCOL = 1

# No method was tuned on the tables but digits; in email one row in eleven is spam.
TABLES = ("credit", "email", "digits", "telco")

Condition = tuple[int, int, Split]
# Parties, rows of each, and how these differ.
CONDITIONS: tuple[Condition, ...] = (
    (10, 50, "iid"),
    (50, 20, "iid"),
    (3, 100, "iid"),
    (10, 50, "label-skew"),
    (10, 50, "feature-shift"),
)

# Two methods are level if their scores, or their areas under the curve, differ by no more.
UTILITY = 0.005
RISK = 0.02


@dataclass(frozen=True, kw_only=True)
class OneshotPreset:
    """Settings, seeds and how many worlds an attacker learns from and is judged in."""

    settings: tuple[Setting, ...]
    seeds: tuple[int, ...]
    n_worlds: int


def _settings() -> tuple[Setting, ...]:
    """Return each table under each condition, so that few settings already have some of everything."""
    n = len(CONDITIONS)
    every = [(table, CONDITIONS[(turn + place) % n]) for turn in range(n) for place, table in enumerate(TABLES)]
    return tuple(
        Setting(dataset=table, n_parties=n_parties, n_per_party=rows, split=split)
        for table, (n_parties, rows, split) in every
    )


PRESETS = {
    "smoke": OneshotPreset(
        settings=(Setting(dataset="breast-cancer", n_parties=3, n_per_party=20, n_public=40),), seeds=(0,), n_worlds=10
    ),
    "quick": OneshotPreset(settings=_settings(), seeds=(0, 1, 2), n_worlds=30),
}
