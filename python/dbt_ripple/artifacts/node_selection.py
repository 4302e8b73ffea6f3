"""dbt's selection grammar on a manifest, as far as a manifest alone answers it.

Union by space, intersection by comma, ``+``, ``2+`` and ``@`` around what a method finds; methods
by name (fqn), path, file, tag, source, exposure, metric, semantic_model, saved_query, unit_test,
resource_type, package, group, access and config. What dbt knows from elsewhere (``state:``,
``result:``, ``source_status:``, ``test_name:`` ...) is refused, not guessed. Tests are selected
where they are named themselves, never because their model is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from dbt_ripple.artifacts.node_names import did_you_mean, find_node
from dbt_ripple.artifacts.project import Node, Project
from dbt_ripple.errors import RippleError

_GRAMMAR: Final = re.compile(
    r"(?P<at>@)?(?P<up>(?P<up_depth>\d*)\+)?((?P<method>[\w.]+):)?(?P<value>.*?)"
    r"(?P<down>\+(?P<down_depth>\d*))?",
    re.DOTALL,
)
_OF_ONE_TYPE: Final = frozenset("exposure metric semantic_model saved_query unit_test".split())
_METHODS: Final = (
    *("fqn", "path", "file", "tag", "source", *sorted(_OF_ONE_TYPE)),
    *("resource_type", "package", "group", "access", "config"),
)
_ELSEWHERE: Final = frozenset("state result source_status test_name test_type version".split())
_WILD: Final = re.compile(r"[*?\[\]]")


class Operators(NamedTuple):
    """The graph operators beside a name: how far to go up and down from it.

    Attributes:
        up: how many steps; None for not at all, and -1 for all the way.
        down: likewise.
    """

    name: str
    up: int | None
    down: int | None


def operators(text: str) -> Operators:
    """A name without the graph operators of dbt around it.

    Raises:
        RippleError: it has an ``@``.

    Example:
        >>> operators("2+orders+"), operators("orders")
        (Operators(name='orders', up=2, down=-1), Operators(name='orders', up=None, down=None))
    """
    parts = _parsed(text)
    if parts["at"]:
        raise RippleError(
            "@ selects what other models need, too, which has no direction",
            text,
            f"say +{text[1:]}, {text[1:]}+ or +{text[1:]}+",
        )
    method = f"{parts['method']}:" if parts["method"] else ""
    return Operators(method + parts["value"], _steps(parts, "up"), _steps(parts, "down"))


def _parsed(text: str) -> dict[str, str]:
    match = _GRAMMAR.fullmatch(text.strip())
    assert match is not None  # it takes anything
    return {key: value or "" for key, value in match.groupdict().items()}


def _steps(parts: Mapping[str, str], way: str) -> int | None:
    if not parts[way]:
        return None
    return int(parts[f"{way}_depth"]) if parts[f"{way}_depth"] else -1


def selected(project: Project, select: Sequence[str], exclude: Sequence[str] = ()) -> set[str]:
    """The unique_ids that some specs select, without those that others do.

    Args:
        project: whose nodes.
        select: each a union of criteria; without any, everything is selected.
        exclude: likewise, what is taken away.

    Raises:
        RippleError: a spec is not understood here, or is of what the project has not (with the
            nearest that it has).
    """
    unique_ids = _union(project, select) if select else set(project.nodes)
    return unique_ids - _union(project, exclude)


def _union(project: Project, specs: Iterable[str]) -> set[str]:
    unique_ids: set[str] = set()
    for criteria in (word for spec in specs for word in spec.split()):
        parts = [_criterion(project, part) for part in criteria.split(",")]
        unique_ids |= set.intersection(*parts)
    return unique_ids


def _criterion(project: Project, text: str) -> set[str]:
    parts = _parsed(text)
    start = set(matching(project, parts["method"], parts["value"], text))
    if not start:
        raise _nothing(project, parts["value"], text)
    chosen = set(start)
    if parts["at"]:
        below = _walk(start, project.children, -1)
        chosen |= below | _walk(below | start, project.parents, -1)
    for way, graph in (("up", project.parents), ("down", project.children)):
        steps = _steps(parts, way)
        if steps is not None:
            chosen |= _walk(start, graph, steps)
    return chosen


def _walk(start: set[str], graph: Mapping[str, Iterable[str]], steps: int) -> set[str]:
    """All that is so many steps away, or (-1) any number."""
    unique_ids, ahead = set(start), set(start)
    while ahead and steps:
        ahead = {other for unique_id in ahead for other in graph.get(unique_id, ())} - unique_ids
        unique_ids |= ahead
        steps -= 1
    return unique_ids


def matching(project: Project, method: str, value: str, text: str) -> Iterator[str]:
    """The unique_ids of the nodes that a method finds, in the order of the manifest.

    Raises:
        RippleError: the method is none that a manifest alone answers.
    """
    kind, _, argument = method.partition(".")
    if not kind:
        kind = _by_default(value)
    if (
        kind not in _METHODS
        or (argument and kind != "config")
        or (kind == "config") != bool(argument)
    ):
        otherwise = f"give `dbt ls --select {text}` its names, or use {', '.join(_METHODS[:4])}"
        raise RippleError(
            f"dbt answers {kind}: from more than the manifest"
            if kind in _ELSEWHERE
            else f"{method}: is no method that is understood here",
            text,
            otherwise
            if kind in _ELSEWHERE
            else did_you_mean(f"{kind}:", (f"{method}:" for method in _METHODS), otherwise),
        )
    for unique_id, node in project.nodes.items():
        if _matches(node, kind, argument, value):
            yield unique_id


def named(project: Project, text: str) -> tuple[Node, str | None, Operators]:
    """The node a person means, the column if they named one, and how far to go from it.

    What `find_node` finds, with dbt's ``+`` around it, or one node that a method or a wildcard finds.

    Raises:
        RippleError: it is none, or several.
    """
    text = text.strip()
    parsed = _parsed(text)
    has_operators = bool(parsed["at"] or parsed["up"] or parsed["down"])
    try:  # a name may hold any of it
        node, column = find_node(project, text)
        if column is None or not has_operators:
            return node, column, Operators(text, None, None)
    except RippleError:
        if not (has_operators or parsed["method"] or _WILD.search(text)):
            raise
    asked = operators(text)
    parts = _parsed(asked.name)
    if parts["method"].partition(".")[0] not in _BY_METHOD and not _WILD.search(parts["value"]):
        return *find_node(project, asked.name), asked
    nodes = [
        project.nodes[unique_id]
        for unique_id in matching(project, parts["method"], parts["value"], text)
        if project.nodes[unique_id].resource_type not in _TESTS
    ]
    if not nodes:
        raise _nothing(project, parts["value"], text)
    if len(nodes) > 1:
        some = ", ".join(node.display_name for node in nodes[:5])
        raise RippleError(
            f"selects {len(nodes)} nodes: {some}{', ...' if len(nodes) > 5 else ''}",
            text,
            "name one of them",
        )
    return nodes[0], None, asked


def named_in_any(project: Project, union: Project, text: str) -> tuple[Node, str | None, Operators]:
    """What is meant: a node of the project itself, if it has one of this name, or else of `union`.

    Raises:
        RippleError: it is none, or several.
    """
    try:
        return named(project, text)
    except RippleError as unknown:
        try:
            return named(union, text)
        except RippleError:
            raise unknown from None


_TESTS: Final = frozenset({"test", "unit_test", "operation"})
_BY_METHOD: Final = frozenset(_METHODS) - {"source"} - _OF_ONE_TYPE
"""Methods that are not also the type of a node, as in `find_node`."""


def _by_default(value: str) -> str:
    if "/" in value:
        return "path"
    return "file" if value.lower().endswith((".sql", ".py", ".csv")) else "fqn"


def _matches(node: Node, kind: str, argument: str, value: str) -> bool:
    if kind == "fqn":
        return node.resource_type != "source" and any(
            _is_called(fqn, value, node.version is not None) for fqn in (node.fqn, node.fqn[1:])
        )
    if kind == "path":
        patch = (node.patch_path or "").partition("://")[2]
        return _in_path(node.original_file_path, value) or (
            patch != "" and fnmatchcase(patch, str(PurePosixPath(value)))
        )
    if kind == "file":
        path = PurePosixPath(node.original_file_path)
        return fnmatchcase(path.name, value) or fnmatchcase(path.stem, value)
    if kind == "tag":
        return any(fnmatchcase(tag, value) for tag in node.tags)
    if kind == "source":
        parts = value.split(".")
        wanted = ["*"] * (3 - len(parts)) + parts if len(parts) > 1 else ["*", value, "*"]
        own = (node.package_name, node.source_name or "", node.name)
        return node.resource_type == "source" and all(map(fnmatchcase, own, wanted))
    if kind in _OF_ONE_TYPE:
        *package, name = value.split(".")
        return (
            node.resource_type == kind
            and fnmatchcase(node.name, name)
            and all(fnmatchcase(node.package_name, p) for p in package)
        )
    if kind == "config":
        return _has_config(node.config, argument.split("."), value)
    return {
        "resource_type": lambda: node.resource_type == value,
        "package": lambda: fnmatchcase(node.package_name, value),
        "group": lambda: node.group == value,
        "access": lambda: node.resource_type == "model" and node.access == value,
    }[kind]()


def _is_called(fqn: Sequence[str], name: str, versioned: bool) -> bool:
    """Whether a full name is that one, or begins with it (a folder)."""
    if not fqn:
        return False
    if versioned and len(fqn) > 1:
        last = name.split(".")[-2:]
        if fqn[-2] == name or "_".join(fqn[-2:]) == "_".join(last):
            return True
    elif fqn[-1] == name:
        return True
    flat, parts = [item for part in fqn for item in part.split(".")], name.split(".")
    if len(flat) < len(parts):
        return False
    for at, part in enumerate(parts):
        if _WILD.search(part):
            if fnmatchcase(".".join(flat[at:]), ".".join(parts[at:])):
                return True
            own_name = fqn[-2] if versioned and len(fqn) > 1 else fqn[-1]
            return len(parts) == 1 and fnmatchcase(own_name, name)
        if flat[at] != part:
            return False
    return True


def _in_path(path: str, wanted: str) -> bool:
    """Whether a file is that one, or below that folder; both may have wildcards."""
    own, parts = PurePosixPath(path).parts, PurePosixPath(wanted).parts
    if "**" in parts:
        return fnmatchcase(path, str(PurePosixPath(wanted)))
    return len(own) >= len(parts) > 0 and all(map(fnmatchcase, own, parts))


def _has_config(config: Any, keys: Sequence[str], value: str) -> bool:
    for key in keys:
        if not isinstance(config, Mapping) or key not in config:
            return False
        config = config[key]
    values = config if isinstance(config, list) else [config]
    return any(
        item == value or (isinstance(item, bool) and str(item).lower() == value.lower())
        for item in values
    )


def _nothing(project: Project, value: str, text: str) -> RippleError:
    words = {
        word: None
        for node in project.nodes.values()
        if node.resource_type not in ("test", "unit_test", "operation")
        for word in (node.name, node.original_file_path, *node.tags, *node.fqn[1:-1])
    }
    return RippleError(
        f"selects nothing in project {project.name}",
        text,
        did_you_mean(value, words, "`dbt ls` lists what there is"),
    )
