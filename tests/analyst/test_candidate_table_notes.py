"""What stands beside a table of candidates, lest its figures be read for more than they are."""

import pytest

from datacollab.analyst import Candidate, Selection


def selection(judged_on, *losses, chosen):
    found = [
        Candidate(integrator="LTI", model=f"model {number}", loss=loss, standard_error=0.01, chosen=number == chosen)
        for number, loss in enumerate(losses)
    ]
    return Selection(candidates=tuple(found), metric="log loss", judged_on=judged_on, n_judges=100)


def test_where_a_simpler_one_was_taken_it_is_said_why():
    assert "The simpler one (*) was taken" in selection("anchor", 0.6, 0.5, chosen=0).table()
    assert "simpler" not in selection("anchor", 0.6, 0.5, chosen=1).table()


@pytest.mark.parametrize(("judged_on", "is_said"), [("rows", False), ("anchor", True), ("groups", True)])
def test_scores_of_rows_that_are_not_the_parties_own_are_no_promise(judged_on, is_said):
    assert bool(selection(judged_on, 0.6, chosen=0).caution) == is_said
