"""What the texts do that dbt runs beside queries, each read once: hooks, headers, and Jinja that runs statements.

A text is rendered (`jinja.hook_runs`), and its statements are read (`flow.hook_statements`). Relations are
names here, as the statements have them, and places of dbt's; which nodes these are, `graph.hooks` says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.statement_effects import MARK, Effects
from dbt_ripple.graph.macros import OWN, Macros, dispatched
from dbt_ripple.graph.traversal import reach_all
from dbt_ripple.jinja.facts import asks, asks_the_graph
from dbt_ripple.jinja.hook_runs import THIS, HookRun, HookRunner, Place, with_any_literal
from dbt_ripple.jinja.kept import cached_method, kept_by
from dbt_ripple.jinja.text import without_branches

_MAY_RUN: Final = re.compile(
    r"\b(?:run_query|statement|context|render|builtins|submit_python_job)\b"
    r"|\badapter\s*\.(?!\s*(?:config|dispatch|get_relation|quote|type)\b)|\bdispatch\s*\(\s*(?!['\"])"
)
"""Words without which a macro runs no statement but by macros that it calls by their names."""

_WORD: Final = re.compile(r"\w+")
_QUOTES: Final = '`"[]'


class Target(NamedTuple):
    """A relation that statements write to or read.

    Attributes:
        name: as it is written; of a relation that Jinja names, empty, unless a schema is written before it.
        last: the last part of the name, lower case.
        place: the relation that Jinja names.
    """

    name: str
    last: str
    place: Place | None = None


class HookEffects(NamedTuple):
    """What a text does.

    Attributes:
        writes: the relations it may write to.
        makes: the functions, variables and other things it makes.
        reads: the relations it names.
        words: of its statements, lower case.
        anything: whether it may write to any relation.
        of_session: whether it changes settings of its session.
        packages: the packages to whose own relations it may write.
        called: the macros that it calls, by unique_id.
        because: why it cannot be followed to the end; None where it can.
        texts: its text and those of the user's macros among them, as far as they may run.
    """

    writes: frozenset[Target]
    makes: frozenset[str]
    reads: frozenset[Target]
    words: frozenset[str]
    anything: bool
    of_session: bool
    packages: frozenset[str]
    called: frozenset[str]
    because: str | None
    texts: tuple[str, ...]

    def may_change(self, node: Node) -> bool:
        """Whether it may change the relation of its own node, or what its node is built from."""
        if self.anything or self.of_session or node.package_name in self.packages:
            return True
        names = {node.name.lower(), (node.alias or node.name).lower()}
        return any(t.place == THIS or t.last in names for t in self.writes)


class HookReader:
    """Reads the texts of one project.

    Args:
        macros: of the project.
    """

    def __init__(self, macros: Macros) -> None:
        project = macros.project
        self.macros = macros
        self.dialect = dialect_of(project.metadata.adapter_type)
        self.only_written = project.hook_writes
        # Mostly, both sides of a comparison have the same macros.
        self._everything = self._key()
        self._effects = _effects_with(self._everything)

    def _key(self) -> bytes:
        """A fingerprint of all that what a text does depends on."""
        project, macros = self.macros.project, self.macros.macros
        known = sorted(self.macros.known.writes.items())
        settings = (project.name, project.metadata.adapter_type, project.hook_writes, known)
        texts = [(u, m.package_name, m.macro_sql) for u, m in sorted(macros.items())]
        return digest(repr((settings, texts)).encode("utf-8", "surrogatepass"))

    @cached_property
    def _runner(self) -> HookRunner:
        project = self.macros.project
        return HookRunner(
            project.macros.values(),
            project.name,
            project.metadata.adapter_type or "",
            {m.package_name for u, m in self.macros.macros.items() if u not in self.macros.user},
            self.macros.known.writes,
            lambda: self._may_run,
        )

    @cached_property
    def _may_run(self) -> frozenset[str]:
        """The macros that may run a statement, themselves or by what they call or name."""
        macros = self.macros.macros
        by_name: dict[str, list[str]] = {}
        for unique_id, macro in macros.items():
            for name in {macro.name, dispatched(macro.name)}:
                by_name.setdefault(name, []).append(unique_id)
        callers: dict[str, list[str]] = {}
        for unique_id, macro in macros.items():
            for word in by_name.keys() & set(_WORD.findall(macro.macro_sql)):
                for called in by_name[word]:
                    callers.setdefault(called, []).append(unique_id)
        running = [u for u, m in macros.items() if _MAY_RUN.search(m.macro_sql)]
        return frozenset(reach_all(running, callers))

    def of(self, text: str, package: str, *, output: bool = True) -> HookEffects:
        """What a text of a package does; without ``output`` only what its Jinja runs."""
        shared = with_any_literal(text) if output else text
        if shared != text and not self._walks_over_nodes(shared):
            # Many nodes have one hook but for a string: what it does with any does for all of them.
            done = self._of(shared, package, output)
            if _is_known(done):
                return done._replace(texts=(text, *done.texts[1:]))
        return self._of(text, package, output)

    @cached_method
    def _walks_over_nodes(self, text: str) -> bool:
        """Whether a text, or a macro that it calls by name, walks over all nodes: then its strings count (`_is_known`)."""
        macros = self.macros.macros
        calls = {u: macro.depends_on.macros for u, macro in macros.items()}
        called = self.macros.user & reach_all(self.macros.named_in(text), calls).keys()
        return any(
            asks(each, asks_the_graph) for each in (text, *(macros[u].macro_sql for u in called))
        )

    def _of(self, text: str, package: str, output: bool) -> HookEffects:
        key = text, package, output
        effects = self._effects.get(key)
        if effects is None:
            # It follows from the text and from all macros, which are the same on the other side.
            effects = self._effects[key] = kept_by(
                HookEffects,
                (b"hook", repr(key).encode("utf-8", "surrogatepass"), self._everything),
                lambda: self._read(self._runner.run(text, package, output=output), text, output),
            )
        return effects

    def _read(self, run: HookRun, text: str, output: bool) -> HookEffects:
        statements = [*run.statements, *(run.output if output else ())]
        done = Effects()
        for statement in statements:
            done |= self._of_statement(statement)
        writes = {self._target(name) for name in done.writes}
        reads = {self._target(name) for name in done.reads}
        reads |= {Target("", "", place) for place in run.reads}
        for statement in statements:
            written = " ".join(self._of_statement(statement).writes)
            places = Counter(self._runner.places_in(statement))
            places -= Counter(self._runner.places_in(written))
            reads |= {Target("", "", place) for place in places}
        anything = done.anything or run.because is not None or any(map(_is_any, writes))
        if anything and self.only_written is not None:
            writes |= {Target(name, _last(name)) for name in self.only_written}
            anything = False
        return HookEffects(
            writes=frozenset(t for t in writes if not _is_any(t)),
            makes=done.makes,
            reads=frozenset(reads),
            words=done.words,
            anything=anything,
            of_session=done.of_session,
            packages=frozenset(p for u in run.known for p in self.macros.known.writes[u]),
            called=frozenset(run.called),
            because=run.because,
            texts=tuple(self._texts(run, text)),
        )

    @cached_method
    def _of_statement(self, statement: str) -> Effects:
        # Here, because hardly any project has another hook today, and a parser takes its time to load.
        from dbt_ripple.flow.hook_statements import effects_of

        return effects_of(statement, self.dialect)

    def _target(self, name: str) -> Target:
        last = _last(name)
        if (mark := MARK.search(last)) is None:
            return Target(name, last)
        places = self._runner.places_in(last)
        if mark[0] != last or not places:
            return Target("", last)
        return Target(name if "." in name else "", "", places[0])

    def _texts(self, run: HookRun, text: str) -> Iterable[str]:
        """The texts that run, without branches that are not taken."""
        macros = self.macros.macros
        if run.because is not None:  # what was not reached may run, too
            yield text
            for unique_id in sorted(
                self.macros.closure(self.macros.named_in(text)) & self.macros.user
            ):
                if macros[unique_id].package_name != OWN:
                    yield macros[unique_id].macro_sql
            return
        run_here = (run.called - run.known - run.skipped) & self.macros.user
        for unique_id in sorted(self.macros.closure(run.skipped) & self.macros.user - run_here):
            if macros[unique_id].package_name != OWN:
                yield macros[unique_id].macro_sql
        of_macros = [macros[u] for u in sorted(run_here)]
        for piece in (text, *(m.macro_sql for m in of_macros if m.package_name != OWN)):
            taken = [number for of, number in run.branches if of == piece]
            yield without_branches(piece, taken)


def _is_known(done: HookEffects) -> bool:
    """Whether all is followed, no name of a relation is put together, and nothing walks over all nodes."""
    return (
        done.because is None
        and not done.anything
        and not any(map(_is_any, done.writes | done.reads))
        and not any(asks(text, asks_the_graph) for text in done.texts)
    )


def _is_any(target: Target) -> bool:
    """Whether it is not known which relation is meant."""
    return target.place is None and MARK.search(target.last) is not None


def _last(name: str) -> str:
    """The last part of a name, lower case and without quotes."""
    return re.split(r"\s*\.\s*", name.strip(_QUOTES + " "))[-1].strip(_QUOTES).lower()


_Effects = dict[tuple[str, str, bool], HookEffects]


@lru_cache(maxsize=4)
def _effects_with(key: bytes) -> _Effects:
    """What has been read with the same macros, to be added to."""
    return {}
