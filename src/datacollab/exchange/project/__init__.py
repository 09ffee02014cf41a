"""What parties and analyst agree on: the project file, the matrix it makes of every table, and the sealed anchor.

Files by what they are for:

* The agreement: `_agreement`, `_project`, `_column`, `_task`, `_task_fields`, `_task_checks`, `_recipe`, `_content`,
  `_refusals`; in words, `_describing`, and beside another, `_comparing`.
* Its file: `_parsing`, `_entries`, `_toml_keys`, `_writing`, `_signing`, `_draft`, `_draft_task`, `_ranges`,
  `_identifiers`.
* From a table to the matrix: `_encoding`, `_target_encoding`, `_column_block`, `_labels`, `_numbers`, `_units`,
  `_adjusted`, `_affected`.
* Reading and writing tables: `_reading`, `_csv`, `_table_format`, `_column_names`, `_table_writing`.
* The anchor: `_anchor`, `_anchor_making`, `_sealed_anchor`, `_guessing`.
"""

from ._adjusted import MOST_OUTSIDE, Adjustments, adjusted_details, adjusted_text
from ._agreement import check_party_name, is_device_name
from ._anchor import Anchor, anchor_from_bytes, anchor_to_bytes
from ._anchor_making import anchor_of_rows, make_anchor
from ._column import Column
from ._comparing import Change, compare_projects
from ._content import project_content
from ._describing import anchor_lines, column_rows, rules_line, task_lines
from ._draft import draft_project, usual_components
from ._encoding import EncodedTable, encode_table
from ._guessing import Guessing, guessing
from ._identifiers import like_record_numbers
from ._project import Project
from ._reading import read_table, table_batches
from ._recipe import AnchorRecipe
from ._sealed_anchor import open_anchor, seal_anchor
from ._signing import load_project, project_text, read_project, read_project_text, sign_project_text
from ._table_format import table_format
from ._table_writing import write_table
from ._task import Task

__all__ = [
    "MOST_OUTSIDE",
    "Adjustments",
    "Anchor",
    "AnchorRecipe",
    "Change",
    "Column",
    "EncodedTable",
    "Guessing",
    "Project",
    "Task",
    "adjusted_details",
    "adjusted_text",
    "anchor_from_bytes",
    "anchor_lines",
    "anchor_of_rows",
    "anchor_to_bytes",
    "check_party_name",
    "column_rows",
    "compare_projects",
    "draft_project",
    "encode_table",
    "guessing",
    "is_device_name",
    "like_record_numbers",
    "load_project",
    "make_anchor",
    "open_anchor",
    "project_content",
    "project_text",
    "read_project",
    "read_project_text",
    "read_table",
    "rules_line",
    "seal_anchor",
    "sign_project_text",
    "table_batches",
    "table_format",
    "task_lines",
    "usual_components",
    "write_table",
]
