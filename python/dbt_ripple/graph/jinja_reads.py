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
from typing import Any, Final

from dbt_ripple.graph.jinja import tags

_TOKEN: Final = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<name>[A-Za-z_]\w*)|(?P<mark>==|[^\s\w])""",
    re.S,
)
_WORD: Final = re.compile(r"\w+")
_SIGNATURE: Final = re.compile(r"\s*(?:macro|materialization)\s+\w+\s*\(?(.*)\)?\s*$", re.S)
_PARAMETER: Final = re.compile(r"(?:^|,)\s*(\w+)")

_OWN: Final = frozenset({"config", "model"})
_ALL_NODES: Final = frozenset({"graph", "results"})
_ANYTHING: Final = frozenset({"context", "kwargs", "varargs"})
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
    insides = tags(text)
    owners = set(_OWN)
    if replaces_internal and insides and (signature := _SIGNATURE.match(insides[0])):
        parameters = _PARAMETER.findall(signature[1])
        owners.update(p for p in parameters if not _NO_PROPERTY.match(p))
        insides = insides[1:]
    reads = NOTHING
    for inside in insides:
        reads |= _read(inside, owners, internal)
        if reads.everything:
            break
    if not reads.everything:
        reads |= _of_all_nodes(insides)
    return reads


def asks_the_graph(text: str) -> bool:
    """Whether a text looks at nodes by ``graph`` or ``results``, which hold all of them."""
    return any(token["name"] in _ALL_NODES for i in tags(text) for token in _TOKEN.finditer(i))


_TYPES: Final = {
    "nodes": frozenset(
        "analysis model operation rpc rpc_call seed snapshot sql_operation test".split()
    ),
    "exposures": frozenset({"exposure"}),
    "metrics": frozenset({"metric"}),
    "saved_queries": frozenset({"saved_query"}),
    "semantic_models": frozenset({"semantic_model"}),
    "sources": frozenset({"source"}),
    "unit_tests": frozenset({"unit_test"}),
}
"""The types of nodes that each part of ``graph`` holds."""

_PART_OF_GRAPH: Final = re.compile(r"\bgraph\s*(?:\.\s*(\w+)|\[\s*['\"](\w+)['\"]\s*\])")


def types_in_graph(texts: Iterable[str]) -> frozenset[str] | None:
    """The types of nodes that texts walk over by ``graph``; None where that may be any.

    Example:
        >>> types_in_graph(["{% for e in graph.exposures.values() %}"]) == {"exposure"}
        True
        >>> types_in_graph(["{% for e in graph.get('exposures') %}"]) is None
        True
    """
    types: set[str] = set()
    for text in texts:
        for inside in tags(text):
            words = [token["name"] for token in _TOKEN.finditer(inside)]
            parts = [m[1] or m[2] for m in _PART_OF_GRAPH.finditer(inside)]
            if "results" in words or words.count("graph") > len(parts):
                return None
            for part in parts:
                if part not in _TYPES:
                    return None
                types |= _TYPES[part]
    return frozenset(types)


def every_word_of(text: str) -> Reads:
    """Of a text that may be handed a node: every word in it may be what it asks that for."""
    return _every_word([token for inside in tags(text) for token in _TOKEN.finditer(inside)])


def _of_all_nodes(insides: Iterable[str]) -> Reads:
    """Of a text that walks over all nodes: every word in it may be what it asks them for."""
    tokens = [token for inside in insides for token in _TOKEN.finditer(inside)]
    words = {token["name"] for token in tokens if token["name"]}
    if words & _ANYTHING:
        return EVERYTHING
    if not words & _ALL_NODES:
        return NOTHING
    return _every_word(tokens)


def _every_word(tokens: list[re.Match[str]]) -> Reads:
    words = {token["name"] for token in tokens if token["name"]}
    if words & _DUMPS:
        return EVERYTHING
    strings = (word for token in tokens if token["text"] for word in _WORD.findall(token["text"]))
    return Reads(False, frozenset(words).union(strings))


def _read(inside: str, owners: set[str], internal: Container[str]) -> Reads:
    tokens = list(_TOKEN.finditer(inside))
    words = [token[0] for token in tokens]
    names: set[str] = set()
    parts: set[tuple[str, str]] = set()
    calls: list[str] = []
    seen = 0  # up to where what follows an owner has been looked at
    for i, token in enumerate(tokens):
        word = words[i]
        if word in ("(", "[", "{"):
            calls.append(_called(words, i) if word == "(" else "")
        elif word in (")", "]", "}") and calls:
            calls.pop()
        of_another = bool(i) and words[i - 1] == "."
        if token["name"] not in (_OWN if of_another else owners) or (of_another and i < seen):
            continue
        after = words[i + 1] if i + 1 < len(words) else ""
        if after == "(" or (after == "=" and (calls or (i and words[i - 1] == "set"))):
            continue  # it sets the config, or is only the name of an argument
        steps, whole, seen = _steps(words, i + 1)
        if word == "config" and steps and not whole:
            parts.add(("meta", steps[0]))  # where dbt looks for what is no config
        while steps and steps[0] in _OWN:
            steps = steps[1:]
        if not steps:
            if calls and (calls[-1] in internal or calls[-1].startswith("adapter.")):
                continue
            return EVERYTHING
        if len(steps) == 1:
            names.add(steps[0])
        else:
            parts.add((steps[0], steps[1]))
    return Reads(False, frozenset(names), frozenset(parts))


def _called(words: list[str], at: int) -> str:
    """The name before a bracket that opens, with ``adapter.`` where it is a method of that."""
    if not at or not words[at - 1].isidentifier():
        return ""
    of_adapter = at >= 3 and words[at - 2] == "." and words[at - 3] == "adapter"
    return f"adapter.{words[at - 1]}" if of_adapter else words[at - 1]


def _steps(words: list[str], at: int) -> tuple[list[str], bool, int]:
    """The keys by which a text goes on from a name, whether it stops where they are not told, and where."""
    steps: list[str] = []
    while at < len(words):
        if words[at] == "." and at + 1 < len(words):
            name = words[at + 1]
            if at + 2 < len(words) and words[at + 2] == "(":
                literal = _literal(words, at + 3, (",", ")"))
                if name in _GETTERS | _META_GETTERS and literal is not None:
                    steps += ["meta", literal] if name in _META_GETTERS else [literal]
                    at = _behind(words, at + 2)
                    continue
                if name.startswith("persist_"):
                    return [*steps, "persist_docs"], False, at + 2
                return steps, True, at + 2
            steps.append(name)
            at += 2
        elif words[at] == "[" and (literal := _literal(words, at + 1, ("]",))) is not None:
            steps.append(literal)
            at += 3
        elif words[at] == "[":
            return steps, True, at
        else:
            break
    return steps, False, at


def _literal(words: list[str], at: int, then: tuple[str, ...]) -> str | None:
    if at + 1 < len(words) and words[at][0] in "'\"" and words[at + 1] in then:
        return words[at][1:-1]
    return None


def _behind(words: list[str], at: int) -> int:
    """Where it goes on behind a bracket that opens."""
    depth = 0
    while at < len(words):
        depth += (words[at] in "([{") - (words[at] in ")]}")
        at += 1
        if not depth:
            break
    return at


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
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "config":
                understood.add(id(node.func))  # it sets the config
            of = node.func.value
            if isinstance(of, ast.Attribute) and of.attr == "config" and node.args:
                key: Any = node.args[0]
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    understood.add(id(of))
                    names.update({"meta"} if node.func.attr.startswith("meta") else {key.value})
                    names.add("meta")
        if isinstance(node, ast.Attribute) and node.attr == "config" and id(node) not in understood:
            return EVERYTHING
        if isinstance(node, ast.Attribute) and node.attr == "this":
            names.add("relation_name")
        if isinstance(node, ast.Constant) and node.value == "config":
            return EVERYTHING
    return Reads(False, frozenset(names))
