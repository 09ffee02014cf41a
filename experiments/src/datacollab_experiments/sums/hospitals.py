"""Three hospitals with a rare outcome, forty codes, gaps and their own exports play a project of sums by commands.

The hospitals have 400, 300 and 107 rows, and nobody at the third has the outcome.  200 public rows have it.  The first
hospital exports as German Excel does (semicolons, decimal commas, Latin-1), the second the same in UTF-8 with a
byte-order mark, the third plain CSV.  The owner drafts the project from the public rows, writes the list of codes into
it, and revises it.  Then come the steps of hospitals, with their defaults: keys, join, share, install, predict.

``simulated`` patients have effects of codes that each draw draws anew.  ``mlc_churn`` of modeldata are customers who
leave, by state; the forty most frequent states are kept, and 5 % of two columns taken out.  2,000 other rows are
predicted at the first hospital.  Beside the model: logistic regression (standardised numbers, one column for each
category, gaps filled, C = 1) on all rows in one place, and on those of the first hospital with the public ones.

Settings were developed on seeds below 100, and are judged on those from 100 on.
"""

import contextlib
import io
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from datacollab.bundle import PublicKey
from datacollab.cli import main as datacollab

from ..harness import r_table, write_table

HOSPITALS = {"north": 400, "south": 300, "west": 107}
"""Rows of each; nobody at the last has the outcome."""
N_PUBLIC = 200
N_NEW = 2000
EXPORTS: dict[str, dict[str, Any]] = {
    "north": {"sep": ";", "decimal": ",", "encoding": "latin-1"},
    "south": {"sep": ";", "decimal": ",", "encoding": "utf-8-sig"},
    "west": {},
}
MOST_BELOW = 0.015
LEAST_SAVED = 0.05
MOST_OFF = 0.02
"""The bars: AUC below logistic regression on all rows, part of the constant's Brier score, mean probability."""
WARDS = ("Chirurgie", "Gefäßchirurgie", "Innere Medizin", "Intensivstation")


def simulate(seed: int) -> tuple[pd.DataFrame, str, str]:
    """Return patients, the column of codes and the target: some 14 % die."""
    random = np.random.default_rng([seed, 39])
    n = 4500
    codes = np.array([f"{letter}{number}" for letter in "CEIJKN" for number in range(10, 20)][:40])
    effect = random.normal(0, 0.9, 40)
    shares = random.dirichlet(np.full(40, 0.7))
    code = random.choice(40, size=n, p=shares)
    table = pd.DataFrame(
        {
            "Alter": np.clip(random.normal(66, 14, n), 18, 100).round(),
            "Geschlecht": random.choice(["m", "w"], n),
            "Diagnose": codes[code],
            "Station": random.choice(WARDS, n, p=[0.3, 0.1, 0.45, 0.15]),
            "Kreatinin": np.exp(random.normal(4.4, 0.4, n)).round(),
            "CRP": np.exp(random.normal(2.5, 1.2, n)).round(1),
            "Blutdruck": random.normal(132, 21, n).round(),
        }
    )
    risk = 0.03 * (table["Alter"] - 66) + 0.9 * (np.log(table["Kreatinin"]) - 4.4) + 0.3 * (np.log(table["CRP"]) - 2.5)
    risk += effect[code] - 0.01 * (table["Blutdruck"] - 132) + 0.8 * (table["Station"] == WARDS[-1])
    # Other logistic noise than below: the rate is 14 % in the mean, not in each draw.
    threshold = np.quantile(risk + random.logistic(size=n), 0.86)
    table["verstorben"] = np.where(risk + random.logistic(size=n) > threshold, "ja", "nein")
    for name, part in {"Kreatinin": 0.08, "CRP": 0.15, "Blutdruck": 0.05, "Station": 0.03}.items():
        table.loc[random.random(n) < part, name] = None
    return table, "Diagnose", "verstorben"


def mlc_churn(seed: int) -> tuple[pd.DataFrame, str, str]:
    """Return customers of a telephone company, of whom 14 % leave, the column of codes and the target."""
    table = r_table("modeldata/mlc_churn").drop(columns="rownames")
    table = table.drop(columns=[name for name in table if name.endswith("charge")])  # the minutes in other units
    text = ["state", "area_code", "international_plan", "voice_mail_plan", "churn"]
    # R's factors: text, whatever they look like.
    table = table.astype(dict.fromkeys(text, str))
    # A list of forty codes: rarer states are dropped.
    table = table[table["state"].isin(table["state"].value_counts().index[:40])]
    table = table.sample(frac=1, random_state=seed)
    random = np.random.default_rng([seed, 39])
    for name in ("total_day_minutes", "number_customer_service_calls"):
        table[name] = table[name].astype(float).mask(random.random(len(table)) < 0.05)
    return table, "state", "churn"


TABLES = {"simulated": simulate, "mlc_churn": mlc_churn}
YES = {"simulated": "ja", "mlc_churn": "yes"}


def deal(table: pd.DataFrame, target: str, yes: str) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], pd.DataFrame]:
    """Return public rows, those of each hospital, and the new ones."""
    table = table.reset_index(drop=True)
    public = table[:N_PUBLIC]
    table = table[N_PUBLIC:]
    *_, last = HOSPITALS
    parts = {}
    for name, n in HOSPITALS.items():
        of_kind = table
        if name == last:
            of_kind = table[table[target] != yes]
        parts[name] = of_kind[:n]
        table = table.drop(parts[name].index)
    return public, parts, table[:N_NEW]


def run(*words: object) -> str:
    """Run a command of the program in this process, and return its output."""
    output = io.StringIO()
    arguments = mock.patch.object(sys, "argv", ["datacollab", *map(str, words)])
    with arguments, contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            datacollab()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{words[:2]} ended with {end.code}: {output.getvalue()}") from None
    return output.getvalue()


def write_codes(project: Path, column: str, codes: list[str]) -> None:
    """Write the list of codes into the project's file, as its owner does who has 200 public rows of forty codes."""
    text = project.read_text(encoding="utf-8")
    listed = ", ".join(f'"{code}"' for code in codes)
    pattern = rf'(name = "{column}"\n.*?categories = )\[[^\]]*\]'
    changed, n = re.subn(pattern, lambda match: f"{match[1]}[{listed}]", text, count=1, flags=re.DOTALL)
    if n != 1:
        raise RuntimeError(f"The project has no categories of {column!r}.")
    project.write_text(changed, encoding="utf-8")


def play(
    place: Path,
    public: pd.DataFrame,
    parts: dict[str, pd.DataFrame],
    new: pd.DataFrame,
    *,
    code: str,
    codes: list[str],
    target: str,
) -> pd.DataFrame:
    """Play all steps in a folder, and return the first hospital's file of predictions."""
    first, *_ = HOSPITALS
    project = place / "project.toml"
    anchor = place / "anchor.dcanchor"
    # Each hospital exports in its own way; the public rows are plain.
    for name in HOSPITALS:
        parts[name].to_csv(place / f"{name}.csv", index=False, **EXPORTS[name])
    public.to_csv(place / "public.csv", index=False)
    new.drop(columns=target).to_csv(place / "new.csv", index=False, **EXPORTS[first])
    # Everybody makes keys, and the owner drafts the project from the public rows.
    for name in (*HOSPITALS, "analyst"):
        run("keys", "new", place / name)
    members = [f"--party={name}={place / name / 'public.key'}" for name in HOSPITALS]
    agreed = ["--like", place / "public.csv", "--target", target, "--purpose", "Rare outcomes."]
    owner = ["-C", place / first]
    run(
        "project",
        "new",
        "rare",
        *agreed,
        *members,
        "--analyst",
        place / "analyst" / "public.key",
        *owner,
        "-o",
        project,
    )
    # Forty codes are more than the public rows hold, so the owner adds the rest.
    write_codes(project, code, codes)
    run("project", "revise", project, place / "public.csv", *owner, "-o", anchor)
    # Every hospital joins, and shares once it has heard two others.
    for name in HOSPITALS:
        run("party", "join", project, anchor, "-C", place / name)
        keys = [PublicKey.load(place / other / "public.key") for other in HOSPITALS if other != name]
        # Two fingerprints are read out by telephone, as hospitals have to.
        heard = [f"--heard={key.fingerprint}" for key in keys[:2]]
        run("party", "share", place / f"{name}.csv", "--approve", *heard, "-C", place / name)
    # The analyst adds up, and each hospital gets the model in a file of its own.
    sums = [place / name / "outbox" / f"{name}.dcsum" for name in HOSPITALS]
    run("analyst", "integrate", *sums, "--project", project, "-C", place / "analyst")
    run("analyst", "export", "-C", place / "analyst")
    run("party", "install", place / "analyst" / "outbox" / f"{first}.dcmodel", *owner)
    run("party", "predict", place / "new.csv", "-o", place / "predictions.csv", *owner)
    return pd.read_csv(place / "predictions.csv", **EXPORTS[first])


def logistic(rows: pd.DataFrame, new: pd.DataFrame, target: str, yes: str) -> np.ndarray:
    """Return probabilities of logistic regression on these rows."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    is_number = make_column_selector(dtype_include="number")
    is_text = make_column_selector(dtype_exclude="number")
    model = make_pipeline(
        make_column_transformer((numbers, is_number), (text, is_text)), LogisticRegression(max_iter=5000)
    )
    model.fit(rows.drop(columns=target).replace({None: np.nan}), rows[target] == yes)
    return np.asarray(model.predict_proba(new.drop(columns=target).replace({None: np.nan}))[:, 1])


def score_draw(name: str, seed: int) -> dict[str, float]:
    table, code, target = TABLES[name](seed)
    yes = YES[name]
    public, parts, new = deal(table, target, yes)
    facts: dict[str, Any] = {"code": code, "codes": sorted(set(table[code])), "target": target}
    with tempfile.TemporaryDirectory() as place:
        probability = play(Path(place), public, parts, new, **facts)[f"proba_{yes}"].to_numpy()
    truth = (new[target] == yes).to_numpy()
    everybody = logistic(pd.concat([*parts.values(), public]), new, target, yes)
    own = logistic(pd.concat([parts["north"], public]), new, target, yes)
    areas = [float(roc_auc_score(truth, each)) for each in (probability, everybody, own)]
    return {
        "AUC": areas[0],
        "AUC, logistic, all rows": areas[1],
        "AUC, logistic, own and public": areas[2],
        "Brier": float(np.mean((probability - truth) ** 2)),
        "Brier, constant": float(truth.mean() * (1 - truth.mean())),
        "mean": float(probability.mean()),
        "truth": float(truth.mean()),
    }


def rows(draws: int, seed: int, table: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield a row for each table: means over draws, and how many draws meet each bar."""
    for name in table:
        found = pd.DataFrame([score_draw(name, each) for each in range(seed, seed + draws)])
        met = {
            f"AUC at most {MOST_BELOW:g} below": found["AUC"] >= found["AUC, logistic, all rows"] - MOST_BELOW,
            f"Brier {LEAST_SAVED:.0%} less": found["Brier"] <= (1 - LEAST_SAVED) * found["Brier, constant"],
            f"mean within {MOST_OFF:g}": (found["mean"] - found["truth"]).abs() <= MOST_OFF,
        }
        yield {"table": name, **found.mean().round(4), **{bar: f"{each.sum()} of {draws}" for bar, each in met.items()}}


if __name__ == "__main__":
    write_table(rows, draws=20, seed=100, table=tuple(TABLES))
