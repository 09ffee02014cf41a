"""Distil anchor predictions in place of a model, and forget the map that the share was made by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text

from ...bundle import Bundle, KeyPair, digest, is_container, is_encrypted, read_regular, unpack, unseal
from ...errors import AnchorError, ExchangeError
from ...model import PREDICTIONS_KIND, AnchorPredictions, predictions_contents, predictions_from
from ...party import AnchorRidge, DistilledModel, distil_predictions, fit_to_predictions
from ..project import Anchor, Project
from ._commit import commit_distilled, commit_forgetting, has_forgotten
from ._installation import NOT_SAID, are_targets, check_addressed
from ._predictions import Predictions
from ._prepare import SEALED
from ._rows_only import check_shares_rows
from ._sides import AtHome, DistilledSide
from ._stored import OwnRows, load_party

__all__ = ["Distilling", "distilled", "distilled_from", "distilled_state", "open_predictions"]


def open_predictions(
    data: bytes, source: Path, project: Project, key: KeyPair, party: str, share_digest: str | None, n_anchors: int
) -> tuple[AnchorPredictions, Bundle]:
    """Read answers, and check that they were made for this party from its last share, on this anchor.

    Parameters
    ----------
    data : bytes
    source : Path
        Whom an error names.
    project : Project
        Whose analyst has to have signed them.
    key : KeyPair
        The party's, to which they are sealed.
    party : str
    share_digest : str or None
        Identity of the party's last share.
    n_anchors : int

    Raises
    ------
    ExchangeError
        Of the kinds "verification" and "model".
    """
    if not (is_container(data) or is_encrypted(data)):
        raise ExchangeError(
            "BUNDLE_MALFORMED",
            f"{source} is no bundle; the .dcanswers that the analyst sent is wanted. Give that file.",
        )
    bundle = unpack(data, kind=PREDICTIONS_KIND, signed_by=project.analyst, what=str(source))
    try:
        check_addressed(bundle, source, project, party, share_digest)
    except ExchangeError as error:
        if error.code == "MODEL_MALFORMED":
            raise _malformed(f"{source} has a manifest that does not say what it should") from None
        raise
    if bundle.members.keys() != {SEALED}:
        raise _malformed(f"{source} is not sealed to party {party!r}, as all answers of a project are")
    try:
        inner = unseal(bundle.members[SEALED], key, purpose=f"answers for {party} in {project.digest}")
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{source}: {error}") from None
    answers = predictions_from(unpack(inner, kind=PREDICTIONS_KIND, what=f"What is sealed in {source}"))
    _check_fits(answers, bundle, source, project, party, n_anchors)
    return answers, bundle


def _check_fits(
    answers: AnchorPredictions, bundle: Bundle, source: Path, project: Project, party: str, n_anchors: int
) -> None:
    task = "regression" if answers.classes is None else "classification"
    told = {"party": answers.party, "task": task, "n_anchors": answers.n_anchors}
    wrong = [name for name, value in told.items() if bundle.facts.get(name) != value]
    if wrong or answers.party != party:
        raise _malformed(f"{source} holds answers of which it says something else: {wrong!r}")
    if answers.n_anchors != n_anchors:
        raise _malformed(f"{source} holds {answers.n_anchors} answers, and the anchor has {n_anchors} rows")
    targets = answers.values if answers.classes is None else answers.classes
    if task != project.task.kind or not are_targets(targets, project):
        raise _malformed(f"{source} holds something other than the targets of project {project.name!r}")


def distilled(answers: AnchorPredictions, anchor: Anchor, own: OwnRows | None, tree: int | None) -> DistilledModel:
    """Learn kernel ridge regression, or a decision tree of at most this depth, and check that it would hold.

    Raises
    ------
    ExchangeError
        ANSWERS_UNFIT.
    """
    rows = None if own is None or len(own.X) < 10 else own.X
    try:
        return distil_predictions(
            answers.party, anchor.rows, answers, None if tree is None else _tree(tree, answers), rows=rows
        )
    except AnchorError as error:
        raise ExchangeError("ANSWERS_UNFIT", str(error)) from None


def distilled_state(
    model: DistilledModel, answers: AnchorPredictions, anchor: Anchor
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of the file in which the party keeps them: the answers, and how to learn from them again."""
    if isinstance(model.estimator, AnchorRidge):
        ridge = model.estimator
        recipe = {"gamma": ridge.gamma_, "alpha": ridge.alpha_, "standardize": ridge.standardize_}
    else:
        recipe = {"tree": model.estimator.max_depth}
    facts, members = predictions_contents(answers)
    figures = {"r2": model.r2, "agreement": model.agreement, "remoteness": model.remoteness}
    return {"answers": facts, "recipe": recipe, "figures": figures, "anchor": _identity(anchor)}, members


def distilled_from(facts: Mapping[str, Any], members: Mapping[str, bytes], anchor: Anchor) -> DistilledModel:
    """The model of `distilled_state` once more: the same to the last bits of its sums.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED or ANCHOR_MISMATCH.
    """
    if facts.get("anchor") != _identity(anchor):
        raise ExchangeError(
            "ANCHOR_MISMATCH",
            "What this party learned is of another anchor than the one that is there now. Open the anchor that was "
            "shared again, or learn from answers on this one.",
        )
    try:
        inner = Bundle(PREDICTIONS_KIND, dict(facts["answers"]), dict(members), None, "")
        answers = predictions_from(inner)
        recipe = facts["recipe"]
        estimator = _tree(recipe["tree"], answers) if "tree" in recipe else AnchorRidge(**recipe)
        return DistilledModel(
            party=answers.party,
            estimator=fit_to_predictions(estimator, anchor.rows, answers.values, answers.classes),
            classes_=answers.classes,
            **facts["figures"],
        )
    # What this program wrote and signed is not checked entry by entry.
    except (ExchangeError, KeyError, TypeError, ValueError) as error:
        raise ExchangeError(
            "STATE_DAMAGED",
            f"The distilled model cannot be read ({type(error).__name__}). Run `datacollab party distil` again with "
            "the file that the analyst sent.",
        ) from None


def _identity(anchor: Anchor) -> str:
    return digest(np.ascontiguousarray(anchor.rows, dtype=np.float64).tobytes())


def _tree(depth: int, answers: AnchorPredictions) -> Any:
    kind = DecisionTreeRegressor if answers.classes is None else DecisionTreeClassifier
    return kind(max_depth=depth, random_state=0)


def _malformed(sentence: str) -> ExchangeError:
    return ExchangeError("ANSWERS_MALFORMED", f"{sentence}. Do not use it; ask the analyst.")


class Distilling(Predictions):
    """What a party does in its folder with answers in place of a model, and after it has forgotten its map."""

    def distil(self, predictions_file: Path, *, tree: int | None = None) -> dict[str, Any]:
        """Check the analyst's answers on the anchor, and learn a model of one's own from them.

        It takes rows of the project's matrix, and no f_k: it works before and after `forget`.

        Parameters
        ----------
        predictions_file : Path
        tree : int, optional
            Most questions of a decision tree for one row; by default kernel ridge regression.

        Returns
        -------
        dict of str to object
            What the answers say of themselves; "r2", "agreement" and "remoteness" as in
            `datacollab.party.DistilledModel`, the last None where the rows are not in the folder any more; and "tree",
            its questions in words, or None.

        Raises
        ------
        ExchangeError
            NOT_SHARED, ANCHOR_MISSING, WRONG_RECIPIENT, WRONG_SHARE, PROJECT_HASH_MISMATCH, ANSWERS_MALFORMED, or
            ANSWERS_UNFIT where nothing can be learned that would hold.
        """
        check_shares_rows(self.project)
        predictions_file = Path(predictions_file)
        self._settle()
        anchor, share_digest = self.anchor, self._logged_share()
        own = None if has_forgotten(self._files) else load_party(self._files, self._own).own
        answers, bundle = open_predictions(
            read_regular(predictions_file),
            predictions_file,
            self.project,
            self.key,
            self.name,
            share_digest,
            len(anchor.rows),
        )
        model = distilled(answers, anchor, own, tree)
        facts, members = distilled_state(model, answers, anchor)
        entry = {"digest": bundle.digest, "file": predictions_file.name, "created": bundle.facts.get("created")}
        with self._locked():
            if self._logged_share() != share_digest:
                raise ExchangeError(
                    "BUSY",
                    f"{self.path} shared again while this command ran, and the answers are on the share before. Send "
                    "the new share, and learn from what is made of it.",
                )
            commit_distilled(self._files, self._own, entry, facts=facts, members=members)
        told = None if tree is None else _in_words(model.estimator, self.project.feature_names)
        figures = {"r2": model.r2, "agreement": model.agreement, "remoteness": model.remoteness}
        return bundle.facts | figures | {"tree": told}

    def forget(self) -> None:
        """Destroy the map f_k and all that was made by it: rows, order, own models, the installed model, the share.

        The distilled model, the anchor, the keys and the log stay.  Files are written over before they are removed;
        backups, snapshots, what a disk keeps of old blocks, and what was sent, are not reached.

        Raises
        ------
        ExchangeError
            NOT_SHARED or FORGOTTEN.
        """
        check_shares_rows(self.project)
        with self._locked():
            self._check_not_forgotten()
            share_digest = self._logged_share()
            commit_forgetting(self._files, self.name, share_digest)

    def _logged_share(self) -> str:
        """Identity of the last share in this project, which the log knows after the map was forgotten, too."""
        shares = [entry["facts"] for entry in self.log.entries() if entry["event"] == "share"]
        ours = [facts["digest"] for facts in shares if facts.get("project_digest") == self.project.digest]
        if not ours:
            raise ExchangeError(
                "NOT_SHARED", f"{self.path} has shared nothing in this project. Run `datacollab party share` first."
            )
        return str(ours[-1])

    def _check_not_forgotten(self) -> None:
        if has_forgotten(self._files):
            # It says so in words.
            load_party(self._files, self._own)

    def _at_home(self) -> AtHome:
        """What was distilled from anchor predictions, beside what was installed, or alone."""
        self._settle()
        side = self._distilled_side()
        if side is None or self._files.model.exists():
            return replace(super()._at_home(), distilled=side)
        sentence = f"{NOT_SAID}: no model is installed, and answers say nothing of your rows left out."
        return AtHome(party=None, model=None, personal=None, sentence=sentence, distilled=side)

    def _distilled_side(self) -> DistilledSide | None:
        if not self._files.learned.exists():
            return None
        kept = self._own.read(self._files.learned)
        return DistilledSide(distilled_from(kept.facts, kept.members, self.anchor))


def _in_words(tree: Any, names: tuple[str, ...]) -> str:
    return str(export_text(tree, feature_names=list(names), max_depth=tree.get_depth() + 1, decimals=3))
