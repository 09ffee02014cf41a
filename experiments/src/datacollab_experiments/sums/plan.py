"""The comparison, and the demands on it: fixed before anything was run.

The rule names D, s and the least penalty by kind of columns, and nothing else: a project is drafted before anybody
knows how many rows there will be.  It is chosen among `candidates` on the 24 settings of `pays` whose defence is
"sums", and on attacks; three further tables are looked at once, with the rule that was chosen.  Where accuracy and
safety pull apart, the safety of parties decides.
"""

from dataclasses import dataclass
from itertools import product

from datacollab.sums import recommended

from ..pays.settings import PRESETS, Setting

SETTINGS: tuple[Setting, ...] = tuple(each for each in PRESETS["quick"].settings if each.defence == "sums")
BESIDE: tuple[Setting, ...] = tuple(
    each
    for each in PRESETS["quick"].settings
    if each.defence == "none" and (each.n_public == 0 or each.split == "label-skew")
)
"""Declared ranges alone, and label skew: reported, and no part of the rule's judgement."""
SEEDS = (0, 1, 2, 3, 4)
ALIKE = ("digits", "mnist", "fashion-mnist", "ujiindoorloc")
"""Pixels and signal strengths: at least 50 columns, all numbers, all with one declared range."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to make sums.

    Attributes
    ----------
    components : int
        D at most.
    noise : float
        s: the noise that parties which do not collude leave in each number of the total.
    least : float
        The least penalty, as a multiple of the operator norm of all noise in the total.
    """

    components: int
    noise: float
    least: float = 1.0


def candidates(*, alike: bool) -> list[Variant]:
    """Return all that are played."""
    every = product((128, 256), (0.1, 0.12, 0.15, 0.2), (1.0,))
    # Where all columns are alike, accuracy bears less noise, so the candidates are smaller.
    if alike:
        every = product((128, 256), (0.03, 0.04, 0.05, 0.07), (1.0, 0.5))
    return [Variant(components=D, noise=s, least=least) for D, s, least in every]


def rule_for(*, alike: bool) -> Variant:
    """Return the library's way: chosen among the candidates before the further tables were looked at."""
    # The library's own constants: the study cannot drift from them.
    rule = recommended(alike=alike)
    return Variant(components=rule.n_components, noise=rule.noise, least=rule.least_penalty)


@dataclass(frozen=True)
class Roster:
    """Parties that hold as many rows each, and those of them that attack together.

    Attributes
    ----------
    n_parties : int
    n_colluding : int
        They know their own rows, and their part of the noise.
    """

    n_parties: int
    n_colluding: int

    def n_known_of(self, n_rows: int) -> int:
        """Return how many of all rows the attackers hold."""
        return n_rows * self.n_colluding // self.n_parties

    def n_known_beside(self, n_others: int) -> int:
        """Return how many rows the attackers hold, if the parties that do not attack hold `n_others`."""
        return round(n_others * self.n_colluding / (self.n_parties - self.n_colluding))


ROSTERS = (Roster(3, 1), Roster(10, 5))
"""The noise allows for half of the parties, rounded up, and all but two at most.  So these attackers are left with s
itself, and know a third or half of the rows: the most that few and many parties allow.
"""
ALONE = Roster(3, 0)
"""For an analyst without a party: more parties leave more noise."""

WORLDS = {
    "made-up": (300, 1500),
    "flchain": (300, 1500),
    "mlc_churn": (300, 1500),
    "hmda": (300,),
    "wide": (300, 1500),
    "digits": (300,),
    "mnist": (300, 1500),
}
"""Worlds under attack, and rows of the parties that do not attack; hmda and digits have too few for more.

Features are those of these tables, targets are made up.  Of wide the map turns its own columns.
"""
N_DRAWS = 40

MEMBERS = {
    "digits": (250, 1000),
    "mlc_churn": (250, 1000, 3000),
    "wide": (250, 1000, 3000),
    "mnist": (1000, 3000),
    "flchain": (250, 1000, 3000),
}
"""Rows of all parties together, by table, among which members are told from others."""
MEMBERS_OF_RARE_CLASS = {"digits": 250, "mlc_churn": 1000, "wide": 1000, "mnist": 1000, "flchain": 1000}
MANY_AUXILIARY = {"mlc_churn": 1000}
"""The same for attackers with 3,000 labelled rows of the kind instead of 1,100, five of ten parties among them; of one
of ten parties, such attackers read less of flchain.
"""
REBUILT = {"digits": (40, 100, 250), "mlc_churn": (40, 100, 250)}
N_MEMBERSHIP_DRAWS = 10
N_REBUILT_DRAWS = 2

LEAST_ABOVE_AVERAGE = 20
MOST_BELOW_AVERAGE = 2
LEAST_ABOVE_OWN = 22
"""Of 24 settings: above the average of locals, below it beyond chance, above own."""
