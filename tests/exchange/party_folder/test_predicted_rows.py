"""Where in a large file the row is that cannot be predicted."""

import pytest

from datacollab.errors import ExchangeError
from party_world import made_up_table, new_world


def test_rows_are_counted_over_all_batches(tmp_path):
    world = new_world(tmp_path)
    folder, source = world.installed(), tmp_path / "large.csv"
    table = made_up_table(20_000, seed=5)
    table.loc[[17_999, 18_500], "age"] = 1e6
    table.to_csv(source, index=False)
    for call in (lambda: folder.predict(source, tmp_path / "out.csv"), lambda: folder.evaluate(source)):
        with pytest.raises(ExchangeError) as caught:
            call()
        assert caught.value.code == "SCHEMA_RANGE"
        assert "in 2 of the first 20000 rows (the first: row 18000)" in str(caught.value)
