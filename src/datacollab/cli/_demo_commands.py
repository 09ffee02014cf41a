"""``datacollab demo``: a party's gain by sums under masks, and the paper's integration methods side by side."""

from __future__ import annotations

import base64
import importlib.util
import json
import math
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from joblib import Parallel, delayed
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .._by_name import OBFUSCATORS
from .._validation import FloatArray, require
from ..analyst import GEP, KTI, LTI, MPP, ODC, Analyst, TargetSimilarityGraph
from ..anchor import SMOTEAnchor
from ..bundle import PublicKey
from ..datasets import Dataset, PartySplit, load, split_parties
from ..errors import RepeatableSecretWarning
from ..estimators import Central, DataCollaborationClassifier, Local
from ..linalg import mean_with_interval, median_gamma
from ..model import LandmarkRidgeClassifier, probabilities_of
from ..party import CommonSpace, Party, obfuscator
from ..sums import MaskedMessage, MaskKey, SumsPlan
from ._data_commands import USUAL_PARTIES
from ._output import Report
from ._progress import shown_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMS = "sums under masks"
ROWS = "rows, undefended"
AVERAGE = "average of local models"
ALONE = "alone"
ONE_PLACE = "all rows in one place"
WAYS = {
    SUMS: "one file; the total alone can be read, with noise",
    ROWS: "each row, in columns of a secret map",
    AVERAGE: "a model of its rows, which tells who is in them",
    ALONE: "nothing",
    ONE_PLACE: "each row as it is, which is not allowed",
}
"""Ways, and the part of its rows that leaves a party."""
N_PUBLIC = 100
N_ANCHORS = 1000
N_TEST = 500
N_COMPONENTS = 48
N_JUDGING = 3
"""Parties whose maps test rows go through, if rows are shared."""

LOCAL = "Local"
PUBLIC = "Local + public"
CENTRAL = "Central"
BASELINES = (LOCAL, PUBLIC, CENTRAL)
EXTENDED = "KTI + graph + centring"
METHODS: dict[str, Callable[[int], Any]] = {
    "MPP": MPP,
    "GEP": GEP,
    "ODC": lambda n_columns: ODC(),
    "LTI": LTI,
    "KTI": KTI,
    EXTENDED: lambda n_columns: KTI(n_columns, graph=TargetSimilarityGraph(), center=True),
}
"""The paper's integration methods, by how many columns they return."""
HEAD = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
MAPS = {name: OBFUSCATORS[name].title for name in ("pca", "kernel-pca", "umap")}
N_COLUMNS = 10
"""Columns of a party's map, as in the paper."""
N_METHOD_ANCHORS = 300
"""Anchor rows, fewer than in the paper: KTI's time grows with their third power."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Demonstration:
    """Accuracies of all ways."""

    n_parties: int
    n_rows: int
    seeds: tuple[int, ...]
    accuracies: dict[str, FloatArray]

    @property
    def columns(self) -> dict[str, dict[str, FloatArray]]:
        """Accuracies of methods, and of baselines, by the obfuscators that were played: UMAP may not be installed."""
        columns = {}
        for title in MAPS.values():
            if f"KTI, {title}" in self.accuracies:
                methods = {method: self.accuracies[f"{method}, {title}"] for method in METHODS}
                own = {LOCAL: self.accuracies[LOCAL]}
                columns[title] = own | methods | {way: self.accuracies[way] for way in (PUBLIC, CENTRAL)}
        return columns

    def interval(self, way: str) -> tuple[float, float]:
        """Return the mean and half the width of its 95 % interval over the draws."""
        return _interval(self.accuracies[way])

    def gain(self, way: str) -> tuple[float, float]:
        """Return the mean accuracy above that of a party alone, and half the width of its 95 % interval."""
        # Pairs of the same draw: how easy its rows are to tell apart cancels out.
        return _interval(self.accuracies[way] - self.accuracies[ALONE])

    @property
    def sentence(self) -> str:
        """A sentence on the gain by sums."""
        gain, half_width = self.gain(SUMS)
        points = f"{100 * abs(gain):.1f} points of accuracy"
        if abs(gain) > half_width:  # never of one draw, whose width is NaN
            return f"Sums under masks {'brought' if gain > 0 else 'cost'} a party {points}."
        draws = "one draw" if len(self.seeds) == 1 else f"{len(self.seeds)} draws"
        return f"Sums were {points} {'above' if gain > 0 else 'below'}, which {draws} cannot tell from chance."

    def as_dict(self) -> dict[str, Any]:
        """Return the parts that JSON can hold."""
        return {
            "n_parties": self.n_parties,
            "n_rows": self.n_rows,
            "seeds": list(self.seeds),
            "accuracy": {way: self.accuracies[way].tolist() for way in WAYS},
            "integration": {name: each.tolist() for name, each in self.accuracies.items() if name not in WAYS},
        }


def demonstrate(
    data: Dataset,
    *,
    n_parties: int,
    n_rows: int,
    seeds: Sequence[int],
    progress: Callable[[str], None],
    n_jobs: int | None = None,
) -> Demonstration:
    """Score all ways in each draw, and the integration methods with each obfuscator that is installed."""
    maps = [name for name in MAPS if name != "umap" or importlib.util.find_spec("umap")]
    # The last map first, and all of its draws in one process: UMAP compiles for longer than it computes.
    tasks = [delayed(_score_methods)(data, n_parties, n_rows, seeds, name) for name in reversed(maps)]
    tasks += [delayed(_score_ways)(data, n_parties, n_rows, seed) for seed in seeds]
    scores = []
    for each in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        scores.append(each)
        progress(f"part {len(scores)} of {len(tasks)}")
    # Scores come in the order of the tasks: methods of each map first, then ways of each draw.
    ways = scores[len(maps) :]
    accuracies = {name: np.array([draw[name] for draw in ways]) for name in ways[0]}
    for methods in scores[: len(maps)]:
        accuracies |= methods
    return Demonstration(n_parties=n_parties, n_rows=n_rows, seeds=tuple(seeds), accuracies=accuracies)


def _deal(data: Dataset, n_parties: int, n_rows: int, seed: int) -> tuple[PartySplit, Any, Any]:
    """Deal rows to parties; return them, and the numbers of the public rows and of those to test on."""
    split = split_parties(data.X, data.y, n_parties=n_parties, n_per_party=n_rows, random_state=seed)
    return split, split.rest[:N_PUBLIC], split.rest[N_PUBLIC : N_PUBLIC + N_TEST]


def _score_ways(data: Dataset, n_parties: int, n_rows: int, seed: int) -> dict[str, float]:
    """Return the accuracies of all ways in one draw."""
    split, public, test = _deal(data, n_parties, n_rows, seed)
    own = dict(split.items())
    classes = np.unique(data.y)
    X_public = data.X[public]
    y_public = data.y[public]
    X_test = data.X[test]
    X, y, names = split.pooled()

    def score(predicted: Any) -> float:
        return float(np.mean(predicted == data.y[test]))

    # All classes in one order: a party may have rows of some of them only.
    def probabilities(kind: Callable[[FloatArray, Any], Any], rows: tuple[FloatArray, Any], *, public: bool) -> Any:
        if public:
            rows = _append(rows, X_public, y_public)
        model = kind(*rows)
        return probabilities_of(model.predict_proba(X_test), model.classes_, classes)

    # Four kinds of local models, each with the probabilities that every party's own one gives the test rows.
    kinds = [(kind, public) for public in (False, True) for kind in (_forest, _kernel_ridge)]
    local = [[probabilities(kind, rows, public=public) for rows in own.values()] for kind, public in kinds]
    whole = _kernel_ridge(*_append((X, y), X_public, y_public))
    space, plan, messages = play_sums(own, X_public, y_public, classes, seed)
    anchor, target = SMOTEAnchor(N_ANCHORS).sample(X_public, y_public, random_state=seed)
    rows = DataCollaborationClassifier(
        obfuscator("pca", N_COMPONENTS), ODC(), SVC(C=10.0), fit_on=X_public, random_state=seed
    ).fit(X, y, groups=names, anchor=anchor, anchor_target=target)
    # Few: each of them predicts all test rows through its own map.
    judging = list(own)[:N_JUDGING]
    asked = np.resize(list(own), len(X_test))
    with_public = [_append(each, X_public, y_public) for each in own.values()]
    return {
        LOCAL: Local(HEAD).fit(X, y, groups=names).score(X_test, data.y[test], groups=asked),
        PUBLIC: float(np.mean([score(clone(HEAD).fit(*each).predict(X_test)) for each in with_public])),
        CENTRAL: Central(HEAD).fit(X, y).score(X_test, data.y[test]),
        SUMS: score(plan.solve(messages).predict(space.transform(X_test))),
        ROWS: float(np.mean([score(rows.predict(X_test, groups=[party] * len(X_test))) for party in judging])),
        # The best of four kinds of local models, chosen by hindsight: sums have to beat a strong rival.
        AVERAGE: max(score(classes[np.mean(each, axis=0).argmax(axis=1)]) for each in local),
        ALONE: max(float(np.mean([score(classes[one.argmax(axis=1)]) for one in each])) for each in local),
        ONE_PLACE: score(whole.predict(X_test)),
    }


def _append(rows: tuple[FloatArray, Any], X: FloatArray, y: Any) -> tuple[FloatArray, Any]:
    X_own, y_own = rows
    return np.vstack([X_own, X]), np.concatenate([y_own, y])


def _score_methods(
    data: Dataset, n_parties: int, n_rows: int, seeds: Sequence[int], name: str
) -> dict[str, FloatArray]:
    """Return the integration methods' accuracies in each draw; each party fits a map of this name on its own rows."""
    draws = [_score_draw(data, n_parties, n_rows, seed, name) for seed in seeds]
    return {f"{method}, {MAPS[name]}": np.array([draw[method] for draw in draws]) for method in METHODS}


def _score_draw(data: Dataset, n_parties: int, n_rows: int, seed: int, name: str) -> dict[str, float]:
    split, public, test = _deal(data, n_parties, n_rows, seed)
    anchor, target = SMOTEAnchor(N_METHOD_ANCHORS).sample(data.X[public], data.y[public], random_state=seed)
    # UMAP needs two rows more than it returns columns.
    n_columns = min(N_COLUMNS, n_rows - 2, data.X.shape[1])
    shares = []
    asked = {}
    for place, (party, rows) in enumerate(split.items()):
        f = Party(party, obfuscator(name, n_components=n_columns, random_state=seed * n_parties + place))
        with warnings.catch_warnings():
            # The same seed gives the same scores; other parties draw their secrets from the operating system.
            warnings.simplefilter("ignore", RepeatableSecretWarning)
            shares.append(f.fit(*rows).share(anchor, target))
        # Each new row goes through one party's map.
        new = test[place::n_parties]
        asked[party] = (f.obfuscate(data.X[new]), data.y[new])
    scores = {}
    for method, integrator in METHODS.items():
        analyst = Analyst(integrator(n_columns), HEAD).fit(shares)
        right = [analyst.party_model(party).predict(rows) == truth for party, (rows, truth) in asked.items()]
        scores[method] = float(np.concatenate(right).mean())
    return scores


def play_sums(
    own: Mapping[Any, tuple[FloatArray, Any]], public: FloatArray, target: Any, classes: Any, seed: int
) -> tuple[CommonSpace, SumsPlan, list[MaskedMessage]]:
    """Play parties that share sums: return the map, the plan, and each party's message."""
    # Secrets come from the operating system otherwise; here the same seed gives the same scores.
    draw = np.random.RandomState(seed).bytes
    space = CommonSpace(public, draw(32))
    keys = {name: MaskKey(draw(32)) for name in own}
    roster = {name: key.public for name, key in keys.items()}
    # Noise and penalty as the commands take them by default.
    usual = space.recommended
    plan = SumsPlan(
        roster, n_components=space.n_components, classes=classes, noise=usual.noise, least_penalty=usual.least_penalty
    )
    messages = []
    for place, (name, (X, y)) in enumerate(own.items()):
        # The first party adds the labelled public rows for all.
        counted = (space.anchor, target) if place == 0 else None
        messages.append(plan.message(name, space.transform(X), y, keys[name], noise_key=draw(32), public=counted))
    return space, plan, messages


def _forest(X: FloatArray, y: Any) -> Any:
    return RandomForestClassifier(50, random_state=0).fit(X, y)


def _kernel_ridge(X: FloatArray, y: Any) -> Any:
    return LandmarkRidgeClassifier(X, gamma=median_gamma(X)).fit(X, y)


def _interval(values: FloatArray) -> tuple[float, float]:
    """Return the mean of values over draws and half the width of its 95 % interval, by Student's t."""
    mean, ends = mean_with_interval(values)
    return mean, math.nan if ends is None else ends[1] - mean


_COLOURS = {SUMS: "#0072B2", ROWS: "#56B4E9", AVERAGE: "#56B4E9", ALONE: "#7f7f7f", ONE_PLACE: "#cccccc"}
"""From Okabe and Ito's palette, distinguished by readers with any colour vision."""
_BRIGHTEST = 0.98
"""Quantile of a picture's numbers from which on all are as bright."""


def demonstration_figure(data: Dataset, demonstration: Demonstration) -> Figure:
    """Draw one party's message, the total of all, and the accuracies of all ways."""
    figure: Figure = require("matplotlib.figure", "plots").Figure(figsize=(12, 3.6), layout="constrained")
    message, total, bars = figure.subplots(1, 3, width_ratios=(1, 1, 1.6))
    n_parties = demonstration.n_parties
    split, public, _ = _deal(data, n_parties, demonstration.n_rows, 0)
    _, plan, messages = play_sums(dict(split.items()), data.X[public], data.y[public], np.unique(data.y), 0)
    pictures = (
        (message, messages[0].words[1:, 0].astype(np.float64), "One party's file: masked sums"),
        (total, np.abs(plan.agreed.total(messages)), f"The total of all {n_parties}, with noise"),
    )
    for axes, numbers, title in pictures:
        # Messages hold the upper triangle, as the matrix of sums is symmetric.
        square = np.zeros((plan.statistic.size, plan.statistic.size))
        square[np.triu_indices(plan.statistic.size)] = numbers
        axes.imshow(np.maximum(square, square.T), cmap="gray_r", vmin=0, vmax=np.quantile(numbers, _BRIGHTEST))
        axes.set_title(title, fontsize=10.5)
        axes.set_xticks([])
        axes.set_yticks([])
    for place, way in enumerate(WAYS):
        mean, half_width = demonstration.interval(way)
        bars.barh(place, mean, 0.75, color=_COLOURS[way], xerr=np.nan_to_num(half_width),
                  error_kw={"elinewidth": 1, "ecolor": "#444444"})  # fmt: skip
        bars.annotate(f"{mean:.3f}", (0.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=9,
                      color="white" if way in (SUMS, ALONE) else "#222222")  # fmt: skip
    bars.set_yticks(range(len(WAYS)), list(WAYS), fontsize=9.5)
    bars.invert_yaxis()
    bars.set_xlim(0.5, 1)
    bars.set_xlabel("accuracy on new rows, mean and 95 % interval")
    bars.spines[["top", "right"]].set_visible(False)
    return figure


def integration_figure(demonstration: Demonstration) -> Figure:
    """Draw the accuracies of the integration methods, a panel for each obfuscator."""
    figure: Figure = require("matplotlib.figure", "plots").Figure(figsize=(12, 3.2), layout="constrained")
    panels = figure.subplots(1, len(demonstration.columns), sharex=True, sharey=True)
    for axes, (title, accuracies) in zip(panels, demonstration.columns.items(), strict=True):
        for way, style in zip(BASELINES, (":", "--", "-"), strict=True):
            axes.axvline(accuracies[way].mean(), color="#7f7f7f", linestyle=style, label=way)
        for place, method in enumerate(METHODS):
            mean, half_width = _interval(accuracies[method])
            axes.errorbar(mean, place, xerr=np.nan_to_num(half_width), fmt="o", color="#0072B2", capsize=3)
        axes.set_title(title, fontsize=10.5)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(METHODS)), list(METHODS), fontsize=9.5)
    panels[0].invert_yaxis()
    figure.supxlabel("accuracy on new rows, mean and 95 % interval", fontsize=10)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=9.5)
    return figure


def demonstration_page(demonstration: Demonstration, dataset: str, figures: Sequence[Path], command: str) -> str:
    """Write the demonstration as a page without outside references; the command reproduces it."""
    pays, methods = (base64.b64encode(path.read_bytes()).decode("ascii") for path in figures)
    rows = []
    for way, leaves in WAYS.items():
        numbers = "".join(f'<td class="number">{text}</td>' for text in _figures(demonstration, way))
        rows.append(f"<tr><td>{escape(way)}</td>{numbers}<td>{escape(leaves)}</td></tr>")
    page = Template(Path(__file__).with_name("demonstration.html").read_text(encoding="utf-8"))
    return page.substitute(
        parties=f"{demonstration.n_parties} parties with {demonstration.n_rows} rows each of {escape(dataset)}",
        sentence=escape(demonstration.sentence),
        rows="".join(rows),
        picture=pays,
        methods_picture=methods,
        methods_rows="".join(f"<tr><td>{'</td><td>'.join(line)}</td></tr>" for line in _tabulate(demonstration)),
        command=escape(command),
        n_draws=len(demonstration.seeds),
        **{"n_test": N_TEST, "n_public": N_PUBLIC, "n_components": N_COMPONENTS},
        **{"n_columns": N_COLUMNS, "n_anchors": N_METHOD_ANCHORS, "local": LOCAL, "public": PUBLIC, "central": CENTRAL},
        **{"sums": SUMS, "ways_rows": ROWS, "average": AVERAGE, "alone": ALONE, "one_place": ONE_PLACE},
    )


def _figures(demonstration: Demonstration, way: str) -> tuple[str, str]:
    """Write the accuracy of a way and its difference from a local model, with intervals if there are any."""
    gain = ""
    if way != ALONE:
        gain = _write_mean(*demonstration.gain(way), sign="+")
    return _write_mean(*demonstration.interval(way)), gain


def _write_mean(mean: float, half_width: float, sign: str = "") -> str:
    if math.isnan(half_width):
        return f"{mean:{sign}.3f}"
    return f"{mean:{sign}.3f} ± {half_width:.3f}"


def _tabulate(demonstration: Demonstration) -> list[list[str]]:
    """Return the table of integration methods, headings first; the baselines are the same in all columns."""
    columns = demonstration.columns
    ways = next(iter(columns.values()))
    rows = [[way, *(_write_mean(*_interval(each[way])) for each in columns.values())] for way in ways]
    gains = [_interval(each[EXTENDED] - each["LTI"]) for each in columns.values()]
    # Before the last two rows, which are baselines.
    rows.insert(-2, ["  above LTI", *(_write_mean(*gain, sign="+") for gain in gains)])
    if len(columns) < len(MAPS):
        rows.append(["UMAP is left out: pip install 'datacollab[umap]' adds it."])
    return [["integration", *columns], *rows]


def demo(
    report: Report, dataset: str, data_dir: Path | None, seeds: int, output: Path, roles: bool, quiet: bool,
    **options: Any,
) -> None:  # fmt: skip
    if roles:
        report.unchanged = f"The files in {output} are as the last step left them."
        report.facts = {"predictions": str(_play_roles(output, quiet=quiet or report.as_json))}
        return
    report.unchanged = "Nothing was written; run the command again, with fewer --seeds if it takes too long."
    start = time.perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    with shown_progress(quiet, steps=2 + 2 * seeds, first="loading") as progress:
        data = load(dataset, data_dir=data_dir)
        if data.task != "classification":
            raise ValueError(f"The demonstration is of classes, and {dataset!r} has numbers; try `datacollab compare`.")
        progress(f"playing {seeds} draw{'s' if seeds > 1 else ''}")
        demonstration = demonstrate(
            data,
            n_parties=options["parties"],
            n_rows=options["rows"],
            seeds=range(seeds),
            progress=progress,
            n_jobs=options["jobs"],
        )
        progress("drawing")
        pictures = (output / "pays.png", output / "methods.png")
        figures = (demonstration_figure(data, demonstration), integration_figure(demonstration))
        for path, figure in zip(pictures, figures, strict=True):
            figure.savefig(path, dpi=144)
        page = output / "index.html"
        scores = output / "scores.json"
        command = shlex.join(["datacollab", *sys.argv[1:]])
        page.write_text(demonstration_page(demonstration, dataset, pictures, command), encoding="utf-8")
        scores.write_text(json.dumps(demonstration.as_dict(), indent=2), encoding="utf-8")
    report.facts = demonstration.as_dict()
    if not report.as_json:
        _print_table(demonstration, dataset)
    for path in (*pictures, page, scores):
        report.line(f"  {path}")
    report.line(f"Done in {time.perf_counter() - start:.0f} s.")


def _print_table(demonstration: Demonstration, dataset: str) -> None:
    console = Console()
    parties = f"{demonstration.n_parties} parties with {demonstration.n_rows} rows each"
    table = Table(title=f"{dataset}: {parties}, on new rows", box=box.SIMPLE_HEAD)
    table.add_column("way")
    for heading in ("accuracy", "above alone"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("what leaves a party")
    for way, leaves in WAYS.items():
        table.add_row(way, *_figures(demonstration, way), leaves)
    console.print(table)
    console.print(demonstration.sentence, highlight=False)
    headings, *lines = _tabulate(demonstration)
    table = Table(*headings, title=f"Rows, by each party's own map to at most {N_COLUMNS} columns", box=box.SIMPLE_HEAD)
    for line in lines:
        table.add_row(*line)
    console.print(table)


def _exchange(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands of an exchange over digits, with notes; each is played in `root` before the next is made."""
    owner, member, *_ = USUAL_PARTIES
    yield "Tables to try it with.", "data deal digits tables"
    yield "Everybody makes keys.", f"keys new {' '.join(USUAL_PARTIES)} analyst"
    members = " ".join(f"--party {party}={party}/public.key" for party in USUAL_PARTIES)
    yield (
        "The owner drafts the project from public rows, and signs it.",
        "project new digits --like tables/public.csv --target digit --purpose 'Recognise digits.' "
        f"{members} --analyst analyst/public.key -C {owner} -o project.toml",
    )
    yield (
        "The owner makes the anchor and seals it to the parties.",
        f"anchor seal tables/public.csv --project project.toml -C {owner} -o anchor.dcanchor",
    )
    for party in USUAL_PARTIES:
        yield "A party joins.", f"party join project.toml anchor.dcanchor --owner {owner}/public.key -C {party}"
        keys = [PublicKey.load(root / other / "public.key") for other in USUAL_PARTIES if other != party]
        # Played alone here; people read their fingerprints out to each other.
        heard = " ".join(f"--heard {key.fingerprint}" for key in keys[:2])
        sharing = f"party share tables/{party}.csv --approve {heard} -C {party}"
        yield "It looks at what would leave, has two others read out their fingerprints, and shares once.", sharing
    sums = " ".join(f"{party}/outbox/{party}.dcsum" for party in USUAL_PARTIES)
    integrating = f"analyst integrate {sums} --project project.toml -C analyst"
    yield "The analyst adds up all files and makes one model.", integrating
    yield "The analyst writes a file with the model for each party.", "analyst export -C analyst"
    yield "A party installs its own.", f"party install analyst/outbox/{member}.dcmodel -C {member}"
    yield "From now on it predicts alone.", f"party predict tables/new.csv -o predictions.csv -C {member}"
    yield "How good is it?", f"party evaluate tables/new.csv -C {member}"


def _play_roles(output: Path, *, quiet: bool) -> Path:
    """Run all commands in a new directory, in which everybody gets one; return a party's predictions."""
    if output.exists() and any(output.iterdir()):
        raise ValueError(f"{output} is not empty; choose another --output, or remove it.")
    output.mkdir(parents=True, exist_ok=True)
    for note, words in _exchange(output):
        if not quiet:
            typer.secho(f"# {note}", dim=True)
            typer.echo(f"$ datacollab {words}")
        # In processes of their own, as at institutions: nothing is handed on but files.
        command = [sys.executable, "-m", "datacollab", *shlex.split(words)]
        ended = subprocess.run(command, cwd=output, stdout=subprocess.DEVNULL if quiet else None, check=False)
        if ended.returncode:
            raise ValueError(f"The step `datacollab {words}` failed; {output} is as it left it.")
    return output / "predictions.csv"
