"""Writes the pictures of a report: one HTML file, or an SVG file for each."""

from __future__ import annotations

from pathlib import Path

from seatrial.charts.draw import Subject, draw_all
from seatrial.charts.report_page import report_page
from seatrial.charts.svg import svg_file
from seatrial.domain.job import Job
from seatrial.domain.reports.pictures import Trend
from seatrial.domain.reports.report import JobReport
from seatrial.engine.reports.configurations import agents_by_label
from seatrial.errors import InvalidInput


def write_pictures(job: Job, report: JobReport, trend: Trend, html: Path | None, folder: Path | None) -> list[Path]:
    """Returns the files that were written. Names of files are ours, never a task's or an agent's."""
    subject = Subject(job, report, trend, agents_by_label(job))
    files: dict[Path, str] = {}
    if html is not None:
        files[html] = report_page(subject)
    if folder is not None:
        files |= {folder / f"job-{job.id}-{each.name}.svg": svg_file(each) for each in draw_all(subject).items}
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        problem = f"Cannot write {error.filename}: {error.strerror}."
        raise InvalidInput(problem, field="html" if html else "svg") from error
    return list(files)
