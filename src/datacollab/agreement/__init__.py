"""What parties and analyst agree on: the project, its file, a first draft of it, and the sealed anchor."""

from ._draft import DraftOptions, draft_project
from ._project import AnchorRecipe, Project, is_device_name, project_content, usual_components
from ._project_description import anchor_lines, column_rows, project_changes, rules_line, sharing_lines, task_lines
from ._project_file import (
    load_project,
    parse_project,
    project_text,
    read_logistic_model,
    read_project,
    read_project_text,
    sign_project_text,
)
from ._sealed_anchor import (
    Anchor,
    Guessing,
    anchor_from_bytes,
    anchor_of_rows,
    anchor_to_bytes,
    draw_expected_rows,
    guessing,
    make_anchor,
    open_anchor,
    seal_anchor,
)
from ._sharing import HAZARDS, META_ANALYSIS, STUDY, Sharing, are_declared_alike, find_factors, sharing_sentences
from ._task import Task

__all__ = ["HAZARDS", "META_ANALYSIS", "STUDY", "AnchorRecipe", "DraftOptions", "Project", "Sharing", "Task"]
__all__ += ["are_declared_alike", "draft_project", "find_factors", "is_device_name", "project_content"]
__all__ += ["load_project", "parse_project", "project_text", "read_project", "read_project_text", "sign_project_text"]
__all__ += ["read_logistic_model", "usual_components"]
__all__ += ["anchor_lines", "column_rows", "project_changes", "rules_line", "sharing_lines", "task_lines"]
__all__ += ["sharing_sentences"]
__all__ += ["Anchor", "Guessing", "anchor_from_bytes", "anchor_of_rows", "anchor_to_bytes", "draw_expected_rows"]
__all__ += ["guessing", "make_anchor", "open_anchor", "seal_anchor"]
