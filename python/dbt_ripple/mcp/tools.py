"""What an agent can ask of a project: each tool is a question to `session.project.Project`, and a sentence about the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.mcp import arguments as asked
from dbt_ripple.mcp.budget import CHARACTERS, page
from dbt_ripple.mcp.documents import EditedColumn, Exported, Found, card_of
from dbt_ripple.rendering.output import count
from dbt_ripple.secrets import scrubber

if TYPE_CHECKING:
    from dbt_ripple.session.answers import Answer, Trace
    from dbt_ripple.session.judged import Judged
    from dbt_ripple.session.project import Project

_NOTES: Final = 5
_NOTE: Final = 200
_SENTENCE: Final = 500
_DIAGRAM: Final = 8_000
"""Characters of a diagram."""


@dataclass
class Reply:
    """An answer before it is fitted into its budget.

    Attributes:
        verdict: one sentence.
        data: plain values.
        lists: the fields of these that are shown part by part.
        notes: what it had to assume.
        not_analysed: nodes in it that could not be, with the reason.
        judged: where the tool decides.
        whole: whether entries of `lists` make sense only uncut.
    """

    verdict: str
    data: Mapping[str, Any]
    lists: Sequence[str]
    notes: Sequence[str] = ()
    not_analysed: Mapping[str, str] = field(default_factory=dict)
    judged: Judged[Any] | None = None
    whole: bool = False

    def fitted(self, cursor: str | None) -> dict[str, Any]:
        """As an agent gets it."""
        notes = [_cut(note) for note in self.notes[:_NOTES]]
        if (more := len(self.notes) - _NOTES) > 0:
            notes.append(f"and {count(more, 'more note')}")
        unseen = [
            {"unique_id": _cut(u), "reason": _cut(why)} for u, why in self.not_analysed.items()
        ]
        if (more := len(unseen) - _NOTES) > 0:
            notes.append(f"{count(more, 'more node')} could not be analysed")
        brief = {}
        if (judged := self.judged) is not None:
            brief["brief"] = {
                "decision": judged.decision,
                "risk": judged.risk,
                "affected_systems": judged.affected_systems,
                "reason": _cut(judged.reason, _SENTENCE),
                "recommendation": _cut(judged.recommendation, _SENTENCE),
            }
        fitted: dict[str, Any] = {
            "verdict": _cut(self.verdict, _SENTENCE),
            **brief,
            "complete": True,
            "truncated": None,
            "not_analysed": unseen[:_NOTES],
            "notes": notes,
        }
        # The rest is for `truncated` and one more note; the answer is sent as text and as values.
        room = CHARACTERS // 2 - _length(fitted) - 400
        part = page(self.data, self.lists, cursor, room, self.whole)
        if part.shortened:
            notes.append(
                f"{count(part.shortened, 'long text or list')} inside the entries cut short: ask about one node for more"
            )
        if part.cursor is not None:
            fitted["truncated"] = {
                "shown": part.shown,
                "total": part.total,
                "cursor": part.cursor,
            }
        fitted["complete"] = not (part.cursor or cursor or unseen or part.shortened)
        return {**fitted, "data": part.data}


def _length(value: Any) -> int:
    return len(msgspec.json.encode(value).decode())


def _cut(text: str, most: int = _NOTE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Tools:
    """The tools over one project, of which is read anew what has changed.

    Args:
        project: what is asked.
        base: what it is compared with where a question does not say it.
        allow_writes: whether `register` may write.
    """

    def __init__(self, project: Project, base: str = "", allow_writes: bool = False) -> None:
        self._project = project
        self._base = base
        self._allow_writes = allow_writes

    @property
    def project(self) -> Project:
        """The project as it is now."""
        return self._project.refreshed()

    def call(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a tool.

        Raises:
            RippleError: there is no such tool, or what is asked is not valid.
        """
        if name not in TOOLS:
            raise RippleError(f"there is no tool {name!r}", "", f"the tools are {', '.join(TOOLS)}")
        type_, method = TOOLS[name]
        try:
            arguments = msgspec.convert(given, type=type_)
        except msgspec.ValidationError as error:
            fields = ", ".join(type_.__struct_fields__)
            raise RippleError(str(error), name, f"its arguments are {fields}") from None
        reply = method(self, arguments)
        fitted: dict[str, Any] = _scrubbed(reply.fitted(arguments.cursor))
        return fitted

    def _base_of(self, given: str) -> Project | Path:
        from dbt_ripple.session.project import Project

        base = given or self._base
        if not base:
            raise RippleError(
                "it is not said what the project is compared with",
                "base",
                "give a folder with the artifacts of base, or a commit such as origin/main",
            )
        here = self._project.project_dir
        for folder in (here / base, Path(base)):
            if (folder / "manifest.json").is_file():
                return folder
        if base.startswith("-") or Path(base).is_dir():
            raise RippleError("no manifest.json in this folder", base, "name another, or a commit")
        return Project.at(base, here)

    # --- the tools ---------------------------------------------------------------------------------

    def search(self, given: asked.Search) -> Reply:
        """Nodes by words."""
        project = self.project
        hits = project.search(given.text)
        nodes = project.artifacts.nodes.values()
        near: list[str] = []
        verdict = (
            f"{count(len(hits), 'node')} found for {given.text!r}; the best is {hits[0].name}."
            if hits
            else ""
        )
        if not hits:
            import difflib

            hidden = ("test", "unit_test", "operation")
            shown = [node.spoken_name for node in nodes if node.resource_type not in hidden]
            names = {name.casefold(): name for name in shown}
            close = difflib.get_close_matches(given.text.casefold(), names, n=5, cutoff=0.5)
            near = [names[name] for name in close]
            verdict = (
                f"No node has all the words of {given.text!r} in its names, columns, tags, owners, path or "
                f"description; {count(len(nodes), 'node')} were looked at."
            )
        found = Found(hits=hits, searched=len(nodes), nearest=near)
        return Reply(verdict, msgspec.to_builtins(found), ["hits"])

    def node(self, given: asked.Node) -> Reply:
        """One node with all its columns."""
        project = self.project
        named = project[given.name]
        card = card_of(project.described(), named.unique_id)
        if named.column is not None:
            card.columns = [c for c in card.columns if c.name.lower() == named.column.lower()]
        owner = f"; its owner is {card.owner}" if card.owner else "; nobody owns it"
        columns = count(len(card.columns), "column")
        verdict = f"{card.asset_type} {card.name}: {columns}, read by {count(len(card.children), 'node')}{owner}."
        unseen = {card.unique_id: card.reason or ""} if card.status == "opaque" else {}
        notes = (
            []
            if card.columns or unseen
            else ["none of its columns is known: no catalog lists them"]
        )
        lists = ["columns", "rows_come_from", "children", "tests", "parents"]
        return Reply(verdict, msgspec.to_builtins(card), lists, notes, unseen)

    def trace(self, given: asked.Trace) -> Reply:
        """What is upstream or downstream."""
        project = self.project
        traced = project.trace(
            given.name,
            direction=given.direction,
            depth=given.depth,
            tests=given.tests,
            select=given.select,
        )
        nodes = {one.unique_id for one in traced}
        name = traced.view.label(traced.view.trace.root).name
        where = {"both": "around"}.get(given.direction, f"{given.direction} of")
        if not nodes:
            left_out = "" if given.tests or given.direction == "upstream" else ", tests aside"
            wanted = f" that {' '.join(given.select)} selects" if given.select else ""
            verdict = (
                f"Nothing{wanted} is {where} {name}{left_out}: the whole project was looked at."
            )
        elif traced.column is None:
            verdict = (
                f"{count(len(nodes), 'node')} {'is' if len(nodes) == 1 else 'are'} {where} {name}."
            )
        else:
            verdict = (
                f"{count(len(traced), 'column')} of {count(len(nodes), 'node')} are {where} {name}."
            )
        notes = [*traced.notes]
        if given.select and nodes:
            notes.append(f"only ways to what {' '.join(given.select)} selects are here")
        if traced.not_analysed:
            notes.append("what could not be analysed may depend on more, and more on it")
        if given.format == "json":
            data, lists = traced.document(), ["nodes", "edges"]
        else:
            data, notes = self._exported(traced, given.format, notes)
            lists = ["lines"]
        whole = given.format != "json"
        return Reply(verdict, data, lists, notes, traced.not_analysed, whole=whole)

    def _exported(
        self, traced: Trace, form: str, notes: list[str]
    ) -> tuple[dict[str, Any], list[str]]:
        from dbt_ripple.rendering.trace import nearest, render

        number = len(traced) + 1
        if form == "openlineage":
            lines = self.project.openlineage(traced)
        else:
            shown = number
            lines = render(traced.view, form)
            while sum(map(len, lines)) > _DIAGRAM and shown > 1:
                shown = shown * 2 // 3
                lines = render(nearest(traced.view, shown), form)
            if shown < number:
                notes = [
                    *notes,
                    f"the diagram has the nearest {shown:,} of {number:,}; a smaller depth has less",
                ]
                number = shown
        return msgspec.to_builtins(Exported(format=form, lines=lines, nodes=number)), notes

    def impact(self, given: asked.Impact) -> Reply:
        """Who would break."""
        answer = self.project.impact(
            given.name,
            rename=given.rename,
            drop=given.drop,
            retype=given.retype,
            add=given.add,
            required=given.required,
            deprecate=given.deprecate,
            remove=given.remove,
        )
        return _judged(answer, ["affected_assets", "broken_tests", "affected_tests"])

    def select_tests(self, given: asked.SelectTests) -> Reply:
        """Tests that a change can break."""
        chosen = self.project.select(self._base_of(given.base), critical=given.critical)
        data = chosen.document()
        verdict = (
            f"{len(chosen):,} of {count(chosen.all_tests, 'test')} can break, and "
            f"{count(len(chosen.models), 'node')} {'has' if len(chosen.models) == 1 else 'have'} to be built."
        )
        if not chosen and not chosen.models:
            verdict = f"{chosen.sides.nothing_changed(False).capitalize()}."
        lists = [
            "tests",
            "models",
            "unit_tests",
            "proven",
            "blocked",
            "broken",
            "exposures",
            "opaque",
        ]
        return _reply(verdict, chosen, data, [*lists, "assets", "causes"])

    def explain(self, given: asked.Explain) -> Reply:
        """Why something is selected or differs."""
        answer = self.project.explain(given.name, self._base_of(given.base))
        verdict = f"{answer.explanation.name} is {answer.verdict}: {answer.reason}."
        return _reply(verdict, answer, answer.document(), ["path", "causes", "edited"])

    def gate(self, given: asked.Gate) -> Reply:
        """May a change be merged."""
        answer = self.project.gate(self._base_of(given.base))
        return _judged(answer, ["findings", "affected", "removed", "causes"])

    def diagnose(self, given: asked.Diagnose) -> Reply:
        """What a number comes from."""
        answer = self.project.diagnose(given.name, since=given.since)
        above = answer.steps[1:]
        wrong = [s.name for s in answer if s.last_run not in (None, "success", "pass")]
        stale = [s.name for s in answer if s.freshness not in (None, "pass")]
        failed = [test for s in answer for test in s.failed_tests]
        changed = [s.name for s in answer if s.changes]
        parts = [
            f"{what}: {', '.join(dict.fromkeys(names))}"
            for what, names in (
                ("did not build", wrong),
                ("is stale", stale),
                ("failed tests", failed),
                ("changed", changed),
            )
            if names
        ]
        found = (
            "; ".join(parts)
            or "no failed run, stale source, failed test or change is known on the way"
        )
        verdict = f"{answer.diagnosis.spoken} comes from {count(len(above), 'relation')}; {found}."
        return _reply(verdict, answer, answer.document(), ["steps"])

    def check_sql(self, given: asked.CheckSql) -> Reply:
        """What an edit would change and break."""
        answer = self.project.check_sql(given.name, given.sql)
        changes = [
            EditedColumn(
                unique_id=c.unique_id,
                column=c.column,
                change=c.change,
                before=c.before,
                after=c.after,
            )
            for c in answer
        ]
        data = {
            **answer.document(),
            "changes": msgspec.to_builtins(changes),
            "broken": [f"{unique_id}: {why}" for unique_id, why in answer.broken.items()],
        }
        reply = _judged(answer, ["changes", "broken", "findings", "affected", "removed"], data)
        tests = data["selection"]["counts"]["impacted_tests"] + len(data["selection"]["unit_tests"])
        edited = ", ".join(
            dict.fromkeys(c.column if c.column != ROWS else "its rows" for c in answer)
        )
        what = f"changes {edited}" if changes else "changes no column and no rows"
        reply.verdict += f" The edit {what}; {count(tests, 'test')} can break."
        return reply

    def register(self, given: asked.Register) -> Reply:
        """Write assets."""
        from dbt_ripple.mcp.arguments import write

        if not self._allow_writes and not given.dry_run:
            raise RippleError(
                "this server writes nothing",
                "register",
                "ask with dry_run, or let a person start it with --allow-writes",
            )
        written = write(self.project, given)
        names = ", ".join(f"{name} {what}" for name, what in written.changed.items())
        done = "were written to" if written.written else "would be written to"
        verdict = (
            f"{names} {done} {written.file}." if names else f"{written.file} has all of it already."
        )
        return Reply(verdict, msgspec.to_builtins(written), ["captured"])


def _reply(
    verdict: str, answer: Answer[Any], data: Mapping[str, Any], lists: Iterable[str]
) -> Reply:
    present = [name for name in lists if isinstance(data.get(name), list)]
    return Reply(verdict, data, present, answer.notes, answer.not_analysed)


def _judged(
    answer: Judged[Any], lists: Iterable[str], data: Mapping[str, Any] | None = None
) -> Reply:
    reply = _reply(f"{answer.decision}: {answer.reason}", answer, data or answer.document(), lists)
    reply.judged = answer
    return reply


def _scrubbed(value: Any) -> Any:
    """Without what must not be said: values of secret environment variables."""
    scrub = scrubber()

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return scrub(value)
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        return [clean(item) for item in value] if isinstance(value, list) else value

    return clean(value)


TOOLS: Final[dict[str, tuple[type[asked.Arguments], Callable[[Tools, Any], Reply]]]] = {
    "search": (asked.Search, Tools.search),
    "node": (asked.Node, Tools.node),
    "trace": (asked.Trace, Tools.trace),
    "impact": (asked.Impact, Tools.impact),
    "select_tests": (asked.SelectTests, Tools.select_tests),
    "explain": (asked.Explain, Tools.explain),
    "gate": (asked.Gate, Tools.gate),
    "diagnose": (asked.Diagnose, Tools.diagnose),
    "check_sql": (asked.CheckSql, Tools.check_sql),
    "register": (asked.Register, Tools.register),
}
"""Each tool: what it is asked with, and what answers."""
