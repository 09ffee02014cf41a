"""What parties and analyst agree on: the project file, the matrix it makes of every table, and the sealed anchor."""

from ..._frames import MOST_OUTSIDE
from ._anchor import (
    Anchor,
    Guessing,
    anchor_from_bytes,
    anchor_of_rows,
    anchor_to_bytes,
    expected_rows,
    guessing,
    make_anchor,
    open_anchor,
    seal_anchor,
)
from ._column import Column
from ._describing import anchor_lines, column_rows, project_changes, rules_line, sharing_lines, task_lines
from ._diagnosis import Finding, column_questions
from ._draft import draft_project
from ._encoding import Adjustments, EncodedTable, adjusted_details, adjusted_text, encode_table, unknown_levels
from ._file import load_project, parse_project, project_text, read_project, read_project_text, sign_project_text
from ._project import AnchorRecipe, Project, is_device_name, project_content, usual_components
from ._sharing import STUDY, Sharing, declared_alike, sharing_sentences
from ._tables import read_table, table_batches, table_format, write_table
from ._task import Task

__all__ = ["STUDY", "AnchorRecipe", "Column", "Project", "Sharing", "Task", "project_content"]
__all__ += ["Finding", "column_questions", "declared_alike", "draft_project", "is_device_name", "usual_components"]
__all__ += ["load_project", "parse_project", "project_text", "read_project", "read_project_text", "sign_project_text"]
__all__ += ["anchor_lines", "column_rows", "project_changes", "rules_line", "sharing_lines", "task_lines"]
__all__ += ["sharing_sentences"]
__all__ += ["read_table", "table_batches", "table_format", "write_table"]
__all__ += ["MOST_OUTSIDE", "Adjustments", "EncodedTable", "adjusted_details", "adjusted_text", "encode_table"]
__all__ += ["unknown_levels"]
__all__ += ["Anchor", "Guessing", "anchor_from_bytes", "anchor_of_rows", "anchor_to_bytes", "expected_rows", "guessing"]
__all__ += ["make_anchor", "open_anchor", "seal_anchor"]
