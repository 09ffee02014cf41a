from dataclasses import replace

import pytest
from report_rows import risks
from test_tables import assert_shows, cell_at, naive, tables_of

from datacollab_experiments.paper import Condition

BASE = Condition(n_sources=None, n_components=16)
CONDITIONS = [
    replace(BASE, obfuscator=kind, out_of_sample=rule, defence=defence)
    for defence in ("groups", "none")
    for kind, rule in (("umap", "row-wise"), ("umap", "umap"), ("pca", "row-wise"))
]
ROWS = {
    "rq4-risks": list(risks("rq4-risks", CONDITIONS, 3)),
    "rq4-risks-table": list(
        risks("rq4-risks-table", [replace(each, dataset="ujiindoorloc") for each in CONDITIONS], 3, "rmse", ())
    ),
}
TABLES = tables_of(ROWS)
COLUMNS = {
    "linkage": "linkage", "labels alone": "linkage_labels", "open-world linkage": "open_world_linkage", "R2c": "r2c",
    "membership, share": "membership_auc", "membership, f alone": "map_membership_auc",
    "zero-leak re-identification": "zero_leak_reidentification",
}  # fmt: skip
PCA = ("mnist", "PCA", "16", "")
UMAP = ("mnist", "UMAP", "16", "umap-learn’s transform")
ROW_WISE = ("mnist", "UMAP", "16", "row by row")


def test_each_obfuscator_and_rule_stands_without_and_with_its_defence():
    assert set(TABLES) == {"rq4-risks_recommended", "rq4-risks-table_recommended"}
    headings = [line.headings for line in TABLES["rq4-risks_recommended"].lines]
    assert headings == [(*at, defence) for at in (PCA, UMAP, ROW_WISE) for defence in ("groups", "none")]


@pytest.mark.parametrize(("at", "kind", "rule"), [(PCA, "pca", "row-wise"), (ROW_WISE, "umap", "row-wise")])
@pytest.mark.parametrize("defence", ["none", "groups"])
def test_every_number_is_the_mean_of_its_rows(at, kind, rule, defence):
    table = TABLES["rq4-risks_recommended"]
    where = {"rows": ROWS, "obfuscator": kind, "out_of_sample": rule, "defence": defence}
    for column, score in COLUMNS.items():
        assert_shows(cell_at(table, column, *at, defence), naive("rq4-risks", "audit", score, **where))
    assert_shows(cell_at(table, "accuracy", *at, defence), naive("rq4-risks", "KTI+TSL+Center", **where))
    strongest = naive("rq4-risks", "PINV", "reconstruction_accuracy", **where)
    assert_shows(cell_at(table, "reconstruction", *at, defence), strongest)


def test_the_papers_values_stand_where_the_paper_has_any():
    table = TABLES["rq4-risks_recommended"]
    found = cell_at(table, "reconstruction", *UMAP, "none").published
    assert (found.mean, found.half_width) == (0.159, 0.017)
    assert cell_at(table, "reconstruction", *PCA, "none").published.mean == 0.632
    for at in ((*ROW_WISE, "none"), (*UMAP, "groups"), (*PCA, "groups")):
        assert cell_at(table, "reconstruction", *at).published is None
        assert cell_at(table, "accuracy", *at).published is None


def test_the_note_says_that_the_papers_measure_hides_re_identification():
    image, table = TABLES["rq4-risks_recommended"], TABLES["rq4-risks-table_recommended"]
    assert "It hides re-identification" in image.note
    assert "Reconstruction:" not in table.note
    for each in (image, table):
        assert "promises nothing" in each.note
        assert not {"anonymous", "safe"} & set(each.note.lower().replace(",", " ").split())
