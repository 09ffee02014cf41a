from project_world import keys, make_project, project, regression, table

__all__ = ["keys", "make_project", "project", "regression", "table"]
