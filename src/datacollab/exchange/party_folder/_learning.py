"""Learn from answers on the anchor in place of a model, and forget the map that the share was made by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.tree import export_text

from ...bundle import read_regular
from ...errors import ExchangeError
from ._answers import learned, learned_from, learned_state, open_answers
from ._commit import commit_forgetting, commit_learned, has_forgotten
from ._pooling import NOT_SAID
from ._predictions import Predictions
from ._sides import AtHome, LearnedSide
from ._stored import load_party

__all__ = ["Learning"]


class Learning(Predictions):
    """What a party does in its folder with answers in place of a model, and after it has forgotten its map."""

    def learn(self, answers_file: Path, *, tree: int | None = None) -> dict[str, Any]:
        """Check the analyst's answers on the anchor, and learn a model of one's own from them.

        It takes rows of the project's matrix, and no f_k: it works before and after `forget`.

        Parameters
        ----------
        answers_file : Path
        tree : int, optional
            Most questions of a decision tree for one row; by default kernel ridge regression.

        Returns
        -------
        dict of str to object
            What the answers say of themselves; "r2", "agreement" and "remoteness" as in
            `datacollab.party.LearnedModel`, the last None where the rows are not in the folder any more; and "tree",
            its questions in words, or None.

        Raises
        ------
        ExchangeError
            NOT_SHARED, ANCHOR_MISSING, WRONG_RECIPIENT, WRONG_SHARE, PROJECT_HASH_MISMATCH, ANSWERS_MALFORMED, or
            ANSWERS_UNFIT where nothing can be learned that would hold.
        """
        answers_file = Path(answers_file)
        self._settle()
        anchor, share_digest = self.anchor, self._logged_share()
        own = None if has_forgotten(self._files) else load_party(self._files, self._own).own
        answers, bundle = open_answers(
            read_regular(answers_file),
            answers_file,
            self.project,
            self.key,
            self.name,
            share_digest,
            len(anchor.rows),
        )
        model = learned(answers, anchor, own, tree)
        facts, members = learned_state(model, answers, anchor)
        entry = {"digest": bundle.digest, "file": answers_file.name, "created": bundle.facts.get("created")}
        with self._locked():
            if self._logged_share() != share_digest:
                raise ExchangeError(
                    "BUSY",
                    f"{self.path} shared again while this command ran, and the answers are on the share before. Send "
                    "the new share, and learn from what is made of it.",
                )
            commit_learned(self._files, self._own, entry, facts=facts, members=members)
        told = None if tree is None else _in_words(model.estimator, self.project.feature_names)
        figures = {"r2": model.r2, "agreement": model.agreement, "remoteness": model.remoteness}
        return bundle.facts | figures | {"tree": told}

    def forget(self) -> None:
        """Destroy the map f_k and all that was made by it: rows, order, own models, the installed model, the share.

        What was learned from answers, the anchor, the keys and the log stay.  Files are written over before they are
        removed; backups, snapshots, what a disk keeps of old blocks, and what was sent, are not reached.

        Raises
        ------
        ExchangeError
            NOT_SHARED or FORGOTTEN.
        """
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
        """What was learned from answers, beside what was installed, or alone."""
        self._settle()
        side = self._learned_side()
        if side is None or self._files.model.exists():
            return replace(super()._at_home(), learned=side)
        sentence = f"{NOT_SAID}: no model is installed, and answers say nothing of your rows left out."
        return AtHome(party=None, model=None, personal=None, sentence=sentence, learned=side)

    def _learned_side(self) -> LearnedSide | None:
        if not self._files.learned.exists():
            return None
        kept = self._own.read(self._files.learned)
        return LearnedSide(learned_from(kept.facts, kept.members, self.anchor))


def _in_words(tree: Any, names: tuple[str, ...]) -> str:
    return str(export_text(tree, feature_names=list(names), max_depth=tree.get_depth() + 1, decimals=3))
