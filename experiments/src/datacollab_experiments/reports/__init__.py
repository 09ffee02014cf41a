"""Reports of experiments: tables, figures and one page, beside the published values and claims."""

from ._picture import Picture
from ._report import write_report
from ._results import report_results

__all__ = ["Picture", "report_results", "write_report"]
