"""Reports of experiments: tables, figures and one page, beside the published values and claims."""

from ._figures import Picture
from ._report import report_results, write_report

__all__ = ["Picture", "report_results", "write_report"]
