"""An incident as Slack, PagerDuty and a webhook of one's own take it, within the limits that they publish.

What does not fit is left out, and the body says how much that is. Names from the project are plain text: nobody
is called and nothing is linked by them. SQL is sent without the values that are written in it, and not at all of nodes
that hold personal data (`sendable`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.flow.reading.reader import without_values
from dbt_ripple.rendering.escaping import shown
from dbt_ripple.rendering.incident import (
    change_line,
    failure_line,
    headline,
    impacted_line,
    job_line,
    source_line,
    success_line,
    suspect_line,
    whose,
)
from dbt_ripple.rendering.output import SCHEMA_VERSION, count, plain

if TYPE_CHECKING:
    from dbt_ripple.governance.incident_document import Incident

# https://docs.slack.dev/reference/block-kit/blocks and .../composition-objects/text-object
SLACK_BLOCKS: Final = 50
SLACK_SECTION: Final = 3000
SLACK_HEADER: Final = 150
SLACK_TEXT: Final = 4000
"""Of `text`, which notifications show: Slack recommends it, and cuts at 40,000."""
# https://developer.pagerduty.com/docs/send-alert-event
PAGERDUTY_SUMMARY: Final = 1024
PAGERDUTY_KEY: Final = 255
PAGERDUTY_BYTES: Final = 512 * 1024

_EACH: Final = 8
"""Causes, and assets below, that a message lists."""


def sendable(incident: Incident, dialect: str) -> tuple[Incident, list[str]]:
    """An incident as it may leave the house, and what was left out of it.

    Args:
        incident: as it is known here.
        dialect: of the SQL in it.

    Returns:
        A copy: of nodes that hold personal data without SQL, of all others with an ellipsis for each value.
    """
    copied = copy.deepcopy(incident)
    sensitive = set(incident.sensitive)
    left = 0
    for suspect in copied.suspects:
        for change in suspect.changes:
            had = bool(change.before or change.after)
            if suspect.unique_id in sensitive:
                change.before = change.after = None
                left += had
            else:
                change.before = without_values(change.before, dialect) if change.before else None
                change.after = without_values(change.after, dialect) if change.after else None
    left_out = f"the SQL of {count(left, 'change')} of what holds personal data" if left else ""
    return copied, [left_out] if left_out else []


def webhook_body(incident: Incident, left_out: Sequence[str]) -> dict[str, Any]:
    """What ``--format json`` prints, and what was left out of it."""
    return {"schema_version": SCHEMA_VERSION, **plain(incident), "left_out": list(left_out)}


# --- Slack -----------------------------------------------------------------------------------------


def slack_body(incident: Incident, left_out: Sequence[str], look: str = "") -> dict[str, Any]:
    """A message of Slack: ``text`` for notifications, and blocks.

    Args:
        incident: as it may be sent.
        left_out: what is not in it already.
        look: the command that shows all of it.
    """
    left = list(left_out)
    title = shown(f"{incident.severity.upper()}: {headline(incident)}")
    blocks: list[dict[str, Any]] = [_header(title)]
    for heading, lines, noun in _parts(incident):
        kept = lines[:_EACH]
        if len(lines) > len(kept):
            left.append(count(len(lines) - len(kept), noun))
        blocks.append(_header(heading))
        blocks += map(_section, _fitting([_bullet(noun) + shown(line) for line in kept]))
    for heading, command in _commands(incident):
        if _units(command) > SLACK_SECTION:
            left.append(f"the command of: {heading}")
        else:
            blocks += [_header(heading), _preformatted(shown(command))]
    foot = "; ".join(["Not in here", *left]).replace("; ", ": ", 1) + ". " if left else ""
    if len(blocks) >= SLACK_BLOCKS:
        foot = f"Not in here: {count(len(blocks) - SLACK_BLOCKS + 1, 'block')} more. {foot}"
        blocks = blocks[: SLACK_BLOCKS - 1]
    if foot or look:
        blocks.append(_section(_cut(f"{foot}All of it: {shown(look)}", SLACK_SECTION)))
    text = title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": _cut(text, SLACK_TEXT), "mrkdwn": False, "blocks": blocks}


def _bullet(noun: str) -> str:
    return "" if noun == "cause" else "• "


def _plain_text(text: str) -> dict[str, Any]:
    """Text in which Slack reads no mention, no link, no emoji and no formatting."""
    return {"type": "plain_text", "text": text, "emoji": False}


def _header(text: str) -> dict[str, Any]:
    return {"type": "header", "text": _plain_text(_cut(text, SLACK_HEADER))}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _plain_text(text)}


def _preformatted(text: str) -> dict[str, Any]:
    """Text that is copied as it stands."""
    element = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [element]}


def _fitting(lines: Sequence[str]) -> Iterator[str]:
    """Lines, as many together as fit into a section; one that is too long alone is cut."""
    kept = ""
    for line in lines:
        line = _cut(line, SLACK_SECTION)
        if kept and _units(kept) + 1 + _units(line) > SLACK_SECTION:
            yield kept
            kept = line
        else:
            kept = f"{kept}\n{line}" if kept else line
    if kept:
        yield kept


# --- PagerDuty -------------------------------------------------------------------------------------


def pagerduty_body(
    incident: Incident, left_out: Sequence[str], routing_key: str = ""
) -> dict[str, Any]:
    """An event of PagerDuty's Events API v2; it resolves the alert where a test passes again.

    Args:
        incident: as it may be sent.
        left_out: what is not in it already.
        routing_key: of the service; empty where it is only shown.
    """
    left = list(left_out)
    details: dict[str, Any] = {"left_out": left}
    payload: dict[str, Any] = {
        "summary": _cut(shown(headline(incident)), PAGERDUTY_SUMMARY),
        "source": _cut(shown(incident.project or "dbt"), 255),
        "severity": incident.severity,
        "component": _cut(shown(incident.spoken), 255),
        "group": _cut(shown(incident.project or "dbt"), 255),
        "class": "dbt",
        "custom_details": details,
    }
    if incident.opened_at is not None:
        payload["timestamp"] = incident.opened_at.isoformat()
    body: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if incident.state == "passing" else "trigger",
        "dedup_key": incident.dedup_key,
        "client": "dbt-ripple",
        "payload": payload,
    }
    for heading, lines, noun in _parts(incident):
        _add(body, details, heading, [_cut(shown(line), 2000) for line in lines], left, noun)
    for heading, command in _commands(incident):
        _add(body, details, heading, [shown(command)], left, f"command ({heading})")
    return body


def _add(
    body: dict[str, Any],
    details: dict[str, Any],
    heading: str,
    lines: list[str],
    left: list[str],
    noun: str,
) -> None:
    """Add as many lines as there is room for, a kilobyte is kept for the line that names what is left out."""
    room = PAGERDUTY_BYTES - 8192 - len(msgspec.json.encode(body))
    kept: list[str] = []
    for line in lines:
        # At most six bytes for a character, where a server writes it in ASCII again.
        room -= 6 * len(line) + 4
        if room < 0:
            break
        kept.append(line)
    if kept:
        details[heading] = kept
    if len(kept) < len(lines):
        left.append(count(len(lines) - len(kept), noun))


# --- what both say ---------------------------------------------------------------------------------


def _parts(incident: Incident) -> Iterator[tuple[str, list[str], str]]:
    """The headings with their lines, and the kind of the lines."""
    owner = whose(incident)
    about = [f"owner: {owner or 'nobody is named'}"]
    last = success_line(incident.last_successful_run)
    about.append(f"last successful run: {last or 'not known'}")
    failed = [failure_line(failure) for failure in incident.failed]
    for failure in incident.failed:
        if failure.dbt_message:
            failed.append(f"{failure.name} says: {' '.join(failure.dbt_message.split())}")
    parts: tuple[tuple[str, list[str], str], ...] = (
        ("What failed", failed or ["nothing, by what is at hand"], "failure"),
        ("Owner and last run", about, "line"),
        ("Likely causes", [*_causes(incident)], "cause"),
        ("Sources", [source_line(source) for source in incident.sources], "source"),
        ("Jobs above it", [job_line(job) for job in incident.jobs], "job"),
        (
            "Contracts not kept above it",
            [
                f"{v.name}{f'.{v.column}' if v.column else ''}: {v.rule}"
                for v in incident.contract_violations
            ],
            "contract",
        ),
        ("Reached below it", [impacted_line(asset) for asset in incident.impacted], "asset"),
        ("DAGs to pause", list(incident.containment.dags), "DAG"),
        ("Not at hand", [reason.message for reason in incident.not_at_hand], "note"),
    )
    for heading, lines, noun in parts:
        if lines:
            yield heading, lines, noun


def _causes(incident: Incident) -> Iterator[str]:
    for number, suspect in enumerate(incident.suspects, start=1):
        changes = "; ".join(change_line(change) for change in suspect.changes[:3])
        owner = f" (owner: {whose(suspect)})" if suspect.owner else ""
        yield f"{number}. {suspect_line(suspect)}{f' [{changes}]' if changes else ''}{owner}"


def _commands(incident: Incident) -> Iterator[tuple[str, str]]:
    for heading, commands in (
        ("Until it is mended", incident.containment.pause),
        ("Once it is mended", incident.containment.rebuild),
        ("Well again, if this passes", incident.containment.check),
    ):
        if commands.command:
            yield heading, commands.command


def _cut(text: str, longest: int) -> str:
    """Text of at most so many characters, counted as JavaScript does: an emoji may be two."""
    if _units(text) <= longest:
        return text
    kept = text.encode("utf-16-le")[: 2 * (longest - 1)].decode("utf-16-le", "ignore")
    return f"{kept}…"


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
