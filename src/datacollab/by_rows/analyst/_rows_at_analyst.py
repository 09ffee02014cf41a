"""Rows, as the analyst takes them: shares are aligned, a model is trained, and each party gets its own file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ...bundle import write_atomically
from ...errors import AgreementError, ExchangeError
from ...folder.analyst import AnalystWay, Export, ReceivedFile
from ._integration import Integration, describe, pack_collaboration, sign_model, sign_predictions, unpack_collaboration
from ._named_methods import cluster_rows, make_integrator, make_model
from ._row_files import check_rows_fit, receive_rows

if TYPE_CHECKING:
    from ...analyst import BaseIntegrator, Collaboration
    from ...share import Share


class RowsAtAnalyst(AnalystWay):
    """Rows, at the analyst: aligned, and made into one model once a quorum has shared."""

    ending: ClassVar[str] = ".dcshare"
    made: ClassVar[str] = "collaboration.dcstate"
    takes_again: ClassVar[bool] = True
    predicts_anchor: ClassVar[bool] = True

    def receive(self, data: bytes, *, where: str) -> ReceivedFile:
        """Read and check a party's share of rows."""
        return receive_rows(data, self.folder.project, self.folder.key, where=where)

    def check_fits(self, received: ReceivedFile, present: Mapping[str, ReceivedFile], *, where: str) -> None:
        """Refuse a share that takes an earlier one's place without saying so, and one of another anchor."""
        check_rows_fit(received, present, where=where)

    def facts_to_log(self, received: ReceivedFile) -> dict[str, Any]:
        """Return the sizes of a share for the log."""
        return {name: received.facts[name] for name in ("n_rows", "n_components", "n_anchors")}

    def describe(self, n_rows: int | None, n_components: int) -> str:
        """Return the sizes of a share in words."""
        return f"{n_rows} rows, {n_components} columns"

    def made_of(self, received: ReceivedFile) -> dict[str, Any]:
        """Return the identity of the share, by which a file names it."""
        return {"share_digest": received.digest}

    def integrate(
        self,
        integrator: BaseIntegrator | str,
        estimator: Any,
        *,
        n_folds: int | None,
        n_clusters: int | None,
        random_state: int | None,
        **options: Any,
    ) -> Integration:
        """Align the representations, train the model, and keep both; see `AnalystFolder.integrate`."""
        self._check_kind(n_clusters)
        received = self.shares()
        self.folder.check_quorum(len(received))
        shares = [each.share for each in received]
        if n_clusters is not None:
            collaboration = cluster_rows(shares, n_clusters, random_state or 0)
        else:
            collaboration = self._train(shares, integrator, estimator, random_state, **options)
        result = describe(collaboration, received, self.folder.project, n_folds)
        write_atomically(self.folder.path / self.made, pack_collaboration(collaboration, result), mode=0o600)
        self.folder.log.append("integrate", **result.facts_to_log())
        return result

    def _train(
        self,
        shares: list[Share],
        integrator: BaseIntegrator | str,
        estimator: Any,
        seed: int | None,
        *,
        n_components: int | None,
        alpha: float | None,
        **options: Any,
    ) -> Collaboration:
        """Train the collaboration's model; an analyst that is left a choice makes it here."""
        from ...analyst import Analyst

        task = self.folder.project.task
        if isinstance(integrator, str):
            integrator = make_integrator(integrator, shares, task=task.kind, n_components=n_components, alpha=alpha)
        if isinstance(estimator, str):
            # Means of groups lie closer together than the rows that will be predicted.
            of_means = not all(share.one_to_one for share in shares)
            estimator = make_model(estimator, task.kind, seed, of_means=of_means)
        kind = task.kind if task.is_single else "auto"
        return Analyst(integrator, estimator, task=kind, random_state=seed or 0, **options).fit(shares)

    def export(self, *, anchor_predictions: bool) -> Export:
        """Return a model of its own for each party, or predictions for the anchor in its place."""
        models, result = self.read_integration()
        project = self.folder.project
        key = self.folder.key
        if anchor_predictions:
            anchors = {each.party: each.share.anchor_representation for each in self.shares()}

            def sign_answers(party: str) -> bytes:
                return sign_predictions(models[party], anchors[party], result, project, key)

            return Export(parties=list(models), facts={"answers": True}, data_for=sign_answers)
        # Kernel and neighbour models hold the rows that they were trained on.
        if result.row_findings:
            raise ExchangeError(
                "MODEL_LEAKS_ROWS",
                f"The model {result.estimator} carries rows that it was trained on "
                f"({', '.join(result.row_findings)}); each party would get the collaboration "
                "representations of all others. Integrate with another model, such as random-forest.",
            )
        return Export(
            parties=list(models), facts={}, data_for=lambda party: sign_model(models[party], result, project, key)
        )

    def read_integration(self) -> tuple[dict[str, Any], Integration]:
        """Return models by party, and their integration, of the shares of rows there; or raise NOT_INTEGRATED."""
        models, result = unpack_collaboration(self.read_made(), where=str(self.folder.path / self.made))
        # A model of shares that were replaced fits the map of no party.
        if result.share_digests != {received.party: received.digest for received in self.shares()}:
            raise ExchangeError(
                "NOT_INTEGRATED", "Shares came in after the last integration. Run `datacollab analyst integrate` again."
            )
        return models, result

    def _check_kind(self, n_clusters: int | None) -> None:
        """Refuse a model for an effect, clusters where there are targets, and a model where there are none."""
        kind = self.folder.project.task.kind
        name = self.folder.project.name
        if kind == "effect":
            raise AgreementError(
                f"Project {name!r} is of an effect: there is no model to send. Run `datacollab analyst effect`."
            )
        if (kind == "none") != (n_clusters is not None):
            how = "give the number of clusters (--clusters)" if kind == "none" else "leave out the number of clusters"
            raise AgreementError(f"Project {name!r} is of kind {kind!r}: {how}.")
