"""The report: one HTML file with everything that a summary of topics says."""

from annealvi.plot.report.page import write_report

__all__ = ["write_report"]
