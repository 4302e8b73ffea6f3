"""Which properties of a node a piece of Jinja reads that no compiled SQL shows.

A hook, a materialization, a macro that replaces one of dbt's, a branch that was not compiled: each
may read anything from ``config`` or ``model``, and act differently for another value. If it names
what it reads, only that counts; if it passes on the whole, everything counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from dbt_ripple.jinja.facts import Use, asks_the_graph, facts_of

_WORD: Final = re.compile(r"\w+")
_OWN: Final = frozenset({"config", "model"})
_ANYTHING: Final = frozenset({"context", "kwargs", "varargs"})
_MAY_READ: Final = re.compile("config|model|graph|results|context|kwargs|varargs")
"""Letters of which some are in each text that reads anything by other names than its parameters'."""
_GETTERS: Final = frozenset({"get", "require"})
_META_GETTERS: Final = frozenset({"meta_get", "meta_require"})
_DUMPS: Final = frozenset({"dictsort", "items", "pprint", "tojson", "toyaml", "xmlattr"})
"""Words by which Jinja gets at what it does not name."""

_NO_PROPERTY: Final = re.compile(
    r"(?:.*_)?(?:code|column|columns|identifier|language|name|relation|relations|schema|database"
    r"|sql|strategy|temporary|type|tmp|path|macro|default|args|query|table|view)$"
)
"""Names of parameters of dbt's own macros that hold no properties of a node."""


@dataclass(frozen=True)
class Reads:
    """What is read of a node's properties.

    Attributes:
        everything: whether it may be any.
        names: properties that are read whole, of the config or besides it.
        parts: ``(property, key)`` for one entry of a property.
    """

    everything: bool = False
    names: frozenset[str] = frozenset()
    parts: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        return self.everything or bool(self.names or self.parts)

    def __or__(self, other: Reads) -> Reads:
        if not other or self.everything:
            return self
        if not self or other.everything:
            return other
        return Reads(False, self.names | other.names, self.parts | other.parts)

    def limited_to(self, names: frozenset[str]) -> Reads:
        """What of it is read of a node that has no other properties than these."""
        if self.everything:
            return self
        return Reads(False, self.names & names, frozenset(p for p in self.parts if p[0] in names))


NOTHING: Final = Reads()
EVERYTHING: Final = Reads(True)


def reads_of(text: str, internal: Container[str], *, replaces_internal: bool = False) -> Reads:
    """What the tags of a text read.

    Args:
        text: of a hook, a branch or a macro.
        internal: the names of dbt's own macros, which get a node's ``model`` to do with it what
            dbt does.
        replaces_internal: whether it is a macro that dbt calls in place of its own, whose parameters may
            hold what dbt's caller knows of the node.

    Example:
        >>> sorted(reads_of("{{ config.get('a') }} {{ model['meta']['b'] }}", ()).parts)
        [('meta', 'a'), ('meta', 'b')]
        >>> reads_of("{{ describe(model) }}", ()).everything
        True
    """
    if not replaces_internal and not _MAY_READ.search(text):
        return NOTHING
    facts = facts_of(text)
    if not facts.readable or not _ANYTHING.isdisjoint(facts.words):
        return EVERYTHING
    parameters = facts.parameters if replaces_internal else ()
    owners = _OWN.union(f"%{p}" for p in parameters if not _NO_PROPERTY.match(p))
    reads = NOTHING
    for use in facts.uses:
        reads |= _read(use, owners, internal)
        if reads.everything:
            return EVERYTHING
    # Of a text that walks over all nodes, every word may be what it asks them for.
    return reads | every_word_of(text) if asks_the_graph(facts) else reads


def _read(use: Use, owners: frozenset[str], internal: Container[str]) -> Reads:
    for at, name in enumerate(use.path):
        if name not in (_OWN if at else owners):
            continue
        rest = use.path[at + 1 :]
        if rest and rest[0].startswith("("):
            return NOTHING  # it sets the config
        steps, whole = _steps(rest)
        meta = {("meta", steps[0])} if name == "config" and steps and not whole else set()
        while steps and steps[0] in _OWN:
            steps = steps[1:]
        if not steps:
            to = use.given_to
            known = to.startswith("adapter.") or (to and to.rpartition(".")[2] in internal)
            return NOTHING if known and not rest else EVERYTHING
        if len(steps) == 1:
            return Reads(False, frozenset(steps), frozenset(meta))
        return Reads(False, frozenset(), frozenset({(steps[0], steps[1]), *meta}))
    return NOTHING


def _steps(path: tuple[str, ...]) -> tuple[list[str], bool]:
    """The keys by which a text goes on from a name, and whether it stops where they are not told."""
    steps: list[str] = []
    at = 0
    while at < len(path):
        step = path[at]
        call = path[at + 1] if at + 1 < len(path) else ""
        if step == "[]":
            return steps, True
        if not call.startswith("("):
            steps.append(step)
            at += 1
        elif step.startswith("persist_"):
            return [*steps, "persist_docs"], False
        elif step in _GETTERS | _META_GETTERS and call != "()":
            steps += ["meta"] if step in _META_GETTERS else []
            steps.append(call[2:-2])
            at += 2
        else:
            return steps, True
    return steps, False


_NODES: Final = frozenset(
    "analysis model operation rpc rpc_call seed snapshot sql_operation test".split()
)
_OTHERS: Final = frozenset({"exposures", "metrics", "semantic_models", "sources", "unit_tests"})
"""The types of nodes in ``graph.nodes``; and the parts of ``graph`` that hold one type each."""


def types_in_graph(texts: Iterable[str]) -> frozenset[str] | None:
    """The types of nodes that texts walk over by ``graph``; None where that may be any.

    Example:
        >>> types_in_graph(["{% for e in graph.exposures.values() %}{% endfor %}"]) == {"exposure"}
        True
        >>> types_in_graph(["{% for e in graph.get('exposures') %}{% endfor %}"]) is None
        True
    """
    types: set[str] = set()
    for text in texts:
        facts = facts_of(text)
        if not facts.readable or "results" in facts.words:
            return None
        for use in facts.uses:
            if "graph" not in use.path:
                continue
            part = use.path[1] if use.name == "graph" and len(use.path) > 1 else ""
            if part != "nodes" and part not in _OTHERS:
                return None
            types |= _NODES if part == "nodes" else {part.removesuffix("s")}
    return frozenset(types)


@cache
def every_word_of(text: str) -> Reads:
    """Of a text that may be handed a node: every word in it may be what it asks that for."""
    facts = facts_of(text)
    if not facts.readable or not _DUMPS.isdisjoint(facts.words):
        return EVERYTHING
    return Reads(False, facts.words.union(word for s in facts.strings for word in _WORD.findall(s)))


def reads_of_python(code: str) -> Reads:
    """What a model in Python reads: ``dbt.config.get("name")`` by its name, all where it does more.

    With each name comes ``meta``, where dbt looks for what the config itself does not have. What
    asks for ``dbt.this`` sees where the model is.

    Example:
        >>> sorted(reads_of_python("def model(dbt, s): return dbt.config.get('limit')").names)
        ['limit', 'meta']
        >>> reads_of_python("def model(dbt, s): return help(dbt.config)").everything
        True
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return EVERYTHING
    names: set[str] = set()
    understood: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="config") as sets):
                understood.add(id(sets))
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="config") as of, attr=getter),
                args=[ast.Constant(value=str(key)), *_],
            ):
                understood.add(id(of))
                names |= {"meta"} if getter.startswith("meta") else {"meta", key}
            case ast.Attribute(attr="this"):
                names.add("relation_name")
            case ast.Constant(value="config"):
                return EVERYTHING
            case ast.Attribute(attr="config") if id(node) not in understood:
                return EVERYTHING
    return Reads(False, frozenset(names))
