"""Every candidate of the analyst by itself, beside what it chose."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path

from datacollab.analyst._choice import FittedCandidate
from datacollab.errors import DataCollabWarning
from datacollab.model import PartyModel

from . import library
from .draws import draw
from .scoring import score
from .settings import Setting
from .tables import load_table
from .trial import CHOSEN, N_SCORED, exchanged


def measure_candidates(
    setting: Setting, seed: int, *, data_dir: Path | None = None
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Scores "candidate|name|party" of all candidates, and of the chosen one under its own name and as "DC*"."""
    started = time.process_time()
    scores: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataCollabWarning)
        drawn = draw(load_table(setting.dataset, data_dir), setting, seed)
        parties, shares = exchanged(drawn)
        tried = library.every_choice(shares, drawn)
        chosen = library.chosen_way(shares, drawn)
        for name in list(parties)[:N_SCORED]:
            models = {library.candidate_name(choice.candidate): _party_model(choice, name) for choice in tried}
            for candidate, model in {**models, CHOSEN: chosen.party_model(name)}.items():
                predicted = library.by_model(parties[name], model, drawn)(drawn.test.X)
                scores[f"candidate|{candidate}|{name}"] = score(drawn.metric, drawn.test.y, predicted)
    return scores, {"candidates": time.process_time() - started}


def _party_model(choice: FittedCandidate, party: str) -> PartyModel:
    functions = choice.integrator.integration_functions_
    return PartyModel(party=party, integration_function=functions[party], estimator=choice.estimator)
