"""The page of an incident: one file without scripts and requests, to be read on a telephone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple import __version__
from dbt_ripple.pages.html import page
from dbt_ripple.rendering.incident import (
    change_line,
    failure_line,
    headline,
    job_line,
    source_line,
    success_line,
    suspect_line,
    whose,
)

if TYPE_CHECKING:
    from dbt_ripple.governance.incident_document import Incident


def incident_page(incident: Incident) -> str:
    """The page as HTML; whatever names are in it are text.

    It has all that is known, and no value of a row.
    """
    containment = incident.containment
    commands = [
        (title, commands.command, commands.exact)
        for title, commands in (
            ("Until it is mended, run without what is wrong", containment.pause),
            ("Once it is mended, build again", containment.rebuild),
            ("Well again, if this passes", containment.check),
        )
        if commands.command
    ]
    return page(
        "incident.html.jinja",
        {
            "incident": incident,
            "headline": headline(incident),
            "commands": commands,
            "version": __version__,
            "change_line": change_line,
            "failure_line": failure_line,
            "job_line": job_line,
            "source_line": source_line,
            "success_line": success_line,
            "suspect_line": suspect_line,
            "whose": whose,
        },
    )
