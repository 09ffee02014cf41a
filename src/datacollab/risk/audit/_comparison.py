"""What each defence would change and cost, to stand in an audit's report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from ...party import Party
from ._choice import choose, defended_options
from ._findings import DefenceEffect
from ._result import AuditResult

__all__ = ["with_defences"]


def with_defences(
    result: AuditResult, party: Party, X: ArrayLike, y: ArrayLike, anchor: ArrayLike, **known: Any
) -> AuditResult:
    """Try every defence on the party's own data, and add what comes of it to an audit's result.

    Parameters
    ----------
    result : AuditResult
        Of the party as it is.
    party : Party
        Its obfuscator is kept, its own defences are put aside.
    X : array-like or dataframe of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    anchor : array-like or dataframe of shape (n_anchors, n_features)
    **known
        Further arguments of `choose`, but for the options: public rows, targets, progress and so on.

    Returns
    -------
    AuditResult
        With `defences`, the party's obfuscator without any first, and what was left out among `not_tested`.
    """
    public = known.get("public") is not None
    options = defended_options("without any defence", party.obfuscator, result.n_components, on_public=public)
    choice = choose(X, y, anchor, options=options, **known)
    tried = {each.option.name for each in choice.assessments}
    left = [option.name for option in options if option.name not in tried]
    said = (f"Defences not tried: {'; '.join(left)}.",) if left else ()
    return replace(
        result,
        not_tested=(*result.not_tested, *said),
        complete=result.complete and choice.complete,
        defences=tuple(
            DefenceEffect(
                name=each.option.name,
                description=each.option.description,
                utility=each.utility,
                utility_name=choice.utility_name,
                linkage=each.risk.linkage,
                reidentification=each.risk.reidentification,
                membership=each.risk.membership,
            )
            for each in choice.assessments
        ),
    )
