"""A file becomes a matrix: reading and writing tables, the diagnosis of columns, and their encoding by a `Schema`."""

from .._frames import MOST_OUTSIDE
from ._column import Column, Keeping, Schema, Target
from ._databases import Query
from ._diagnosis import (
    MOST_CATEGORIES,
    Answers,
    ColumnFinding,
    Diagnosis,
    column_questions,
    diagnose,
)
from ._encoding import (
    Adjustments,
    ColumnPlace,
    EncodedTable,
    adjustments_lines,
    adjustments_text,
    encode_table,
    encode_target,
    range_words,
    unknown_levels,
)
from ._table_files import (
    Watched,
    is_read,
    is_same_file,
    read_table,
    table_batches,
    table_file,
    table_format,
    table_source,
    write_table,
)
from ._target_diagnosis import are_amounts, class_text, rare_classes, target_entries
from ._text import take_kept
from ._values import NotNumericError, as_numbers, label_codes

__all__ = ["Column", "Keeping", "Schema", "Target", "take_kept"]
__all__ += ["Query", "is_read", "is_same_file", "read_table", "table_batches", "table_file", "table_format"]
__all__ += ["Watched", "table_source", "write_table"]
__all__ += ["MOST_CATEGORIES", "Answers", "ColumnFinding", "Diagnosis", "column_questions", "diagnose", "rare_classes"]
__all__ += ["are_amounts", "class_text", "target_entries"]
__all__ += ["MOST_OUTSIDE", "Adjustments", "ColumnPlace", "EncodedTable", "NotNumericError", "adjustments_lines"]
__all__ += ["adjustments_text", "as_numbers", "encode_table", "encode_target", "label_codes", "range_words"]
__all__ += ["unknown_levels"]
