from project_world import keys, make_project, project, regression, table, text

__all__ = ["keys", "make_project", "project", "regression", "table", "text"]
