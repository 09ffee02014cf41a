"""A file becomes a matrix: reading and writing tables, the diagnosis of columns, and their encoding by a `Schema`."""

from .._frames import MOST_OUTSIDE
from ._adjustments import Adjustments, adjustments_lines, adjustments_text
from ._column import Column
from ._diagnosis import (
    MOST_CATEGORIES,
    Answers,
    Diagnosis,
    Finding,
    column_questions,
    diagnose,
    rare_classes,
    target_entries,
)
from ._encoding import EncodedTable, encode_table, encode_target, unknown_levels
from ._place import ColumnPlace, range_words
from ._schema import Schema, Target
from ._table_files import read_table, table_batches, table_format, write_table
from ._values import NotNumericError, as_numbers, label_codes

__all__ = ["Column", "Schema", "Target"]
__all__ += ["read_table", "table_batches", "table_format", "write_table"]
__all__ += ["MOST_CATEGORIES", "Answers", "Diagnosis", "Finding", "column_questions", "diagnose", "rare_classes"]
__all__ += ["target_entries"]
__all__ += ["MOST_OUTSIDE", "Adjustments", "ColumnPlace", "EncodedTable", "NotNumericError", "adjustments_lines"]
__all__ += ["adjustments_text", "as_numbers", "encode_table", "encode_target", "label_codes", "range_words"]
__all__ += ["unknown_levels"]
