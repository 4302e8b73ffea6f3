"""The file of a finding, and the line where that is certain.

A wrong line is worse than none: where the line is not certain, the finding points to line 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.artifacts.paths import FILE, text_of_file
from dbt_ripple.artifacts.read_yaml import check_bounds
from dbt_ripple.errors import RippleError

_SECTIONS: Final = {
    "model": "models",
    "seed": "seeds",
    "snapshot": "snapshots",
    "analysis": "analyses",
    "exposure": "exposures",
    "function": "functions",
    "metric": "metrics",
    "semantic_model": "semantic_models",
    "saved_query": "saved_queries",
    "unit_test": "unit_tests",
}
_OF_DECLARATIONS: Final = frozenset(
    "owner_missing owner_removed promise_lowered tier1_key_untested contract_version_without_migration "
    "pii_untagged pii_tag_removed source_drift".split()
)
"""Rules of what a yml file says; the others are about the code."""

_COMMENT: Final = re.compile(r"\{#.*?#\}|/\*.*?\*/|--[^\n]*", re.DOTALL)
_YML: Final = (".yml", ".yaml")
PROJECT_FILE: Final = "dbt_project.yml"


class FileLine(NamedTuple):
    """A line of a file; the file's name is relative to where the command is called."""

    file: str
    line: int


class Places:
    """Finds the lines of findings about the nodes of a change.

    Args:
        head: the project; what only ``base`` has is placed where it was.
        base: the other side.
        project_dir: where the files are.
    """

    def __init__(self, head: Project, base: Project, project_dir: Path) -> None:
        self.head = head
        self.base = base
        self.project_dir = project_dir
        # Of one answer: a process that lasts meets edited files, and others under the same name elsewhere.
        self._texts: dict[str, str | None] = {}

    def of(
        self,
        unique_id: str | None,
        column: str | None = None,
        rule: str = "",
        missing: Sequence[str] = (),
    ) -> FileLine | None:
        """Where a finding stands; None where it is about no file of the project.

        Args:
            unique_id: the node it is about.
            column: the column it is about.
            rule: the rule of the gate.
            missing: the names it cannot find.
        """
        node = None
        if unique_id is not None:
            node = self.head.nodes.get(unique_id) or self.base.nodes.get(unique_id)
        if unique_id not in self.head.nodes and not self._is_there(node):
            return None
        if node is None or node.package_name != self.head.name or not node.original_file_path:
            return None
        file = node.original_file_path
        if node.resource_type == "asset":
            return self._of_asset(node)
        declared = _of_package(node.patch_path, node.package_name)
        if file.endswith(_YML):
            return self._at(file, self._in_yml(file, node, column))
        if rule in _OF_DECLARATIONS and declared:
            line = self._in_yml(declared, node, column)
            if line is not None:
                return self._at(declared, line)
        names = [column] if column else list(missing)
        line = next((at for n in names if (at := self._in_sql(file, node, n)) is not None), None)
        if line is None and column and declared:
            line = self._in_yml(declared, node, column, only_the_column=True)
            if line is not None:
                return self._at(declared, line)
        return self._at(file, line)

    def _of_asset(self, node: Node) -> FileLine:
        """Where a declared asset begins. A file that is not beside the project is named as it was given."""
        beside = self.project_dir / node.original_file_path
        file = beside if node.original_file_path == FILE else Path(node.original_file_path)
        lines = (text_of_file(file) or "").splitlines()
        begins = re.compile(
            rf"""[\s{{,-]*id:\s*["']?{re.escape(node.label or "")}["']?\s*(?:[,}}#]|$)"""
        )
        line_numbers = [at for at, line in enumerate(lines, 1) if begins.match(line)]
        return FileLine(
            self._at(str(file.resolve()), None).file,
            line_numbers[0] if len(line_numbers) == 1 else 1,
        )

    def declared(self, node: Node, column: str | None = None, key: str = "") -> FileLine | None:
        """Where a yml file of the node's own package declares it, or a column or a key of it.

        The file is relative to the project. None where none does, or where it cannot be told; a
        ``key`` is one of the properties, or one of its ``config``.
        """
        file = node.original_file_path
        if not file.endswith(_YML):
            file = _of_package(node.patch_path, node.package_name) or ""
        content = self._text(file) if file and node.package_name == self.head.name else None
        root = _composed(content) if content is not None else None
        if root is None:
            return None
        if node.resource_type == "test":
            item = _test_in(root, node)
            item = _below(key, *_values_of(item)) if key and item is not None else item
            return FileLine(file, _line(item)) if item is not None else None
        entry = _entry_of(root, node)
        if column and entry is not None:
            columns = _columns_called(entry, column)
            entry = columns[0] if len(columns) == 1 else None
        if entry is None:
            return None
        if not key:
            return FileLine(file, _line(entry))
        at = _below(key, entry, *_called(_items(root, "sources"), node.source_name or ""))
        return FileLine(file, _line(at)) if at is not None else None

    def in_project_file(self, *keys: str, part: str = "") -> FileLine | None:
        """Where the project file sets something: the value below as many of the first keys as it has.

        The last key may have a ``+`` before it; it has to be there. Of a mapping, a ``part`` is looked for in it.
        """
        content = self._text(PROJECT_FILE)
        level = _composed(content) if content is not None else None
        found = None
        for key in (*keys[:-1], ""):
            there = {name: (at, value) for name, at, value in _keys(level)}
            found = there.get(f"+{keys[-1]}", there.get(keys[-1], found))
            level = there[key][1] if key in there else None
        if found is None:
            return None
        parts = {name: at for name, at, _ in _keys(found[1])}
        return FileLine(PROJECT_FILE, _line(parts.get(part, found[0])))

    def line_in_file(self, file: str, text: str, line: int) -> int | None:
        """The line of a file on which a line of a text stands that is in it once; None elsewhere."""
        content, code = self._text(file), text.strip()
        if content is None or not code or content.count(code) != 1:
            return None
        ahead = len(text) - len(text.lstrip())
        before = content.count("\n", 0, content.index(code))
        return max(before + line - text.count("\n", 0, ahead), 1)

    def of_compiled_line(self, unique_id: str, line: int) -> FileLine | None:
        """Where a line of a node's compiled SQL stands: the only line that is the same as written."""
        place, node = self.of(unique_id), self.head.nodes.get(unique_id)
        content = self._text(node.original_file_path) if place is not None and node else None
        compiled = (node.compiled_code or "").splitlines() if node else []
        if place is None or content is None or not 1 <= line <= len(compiled):
            return place
        text = compiled[line - 1].strip()
        written = [at for at, line in enumerate(content.splitlines(), 1) if line.strip() == text]
        same = sum(line.strip() == text for line in compiled)
        return place._replace(line=written[0]) if same == len(written) == 1 else place

    def _at(self, file: str, line: int | None) -> FileLine:
        path = self.project_dir / file
        try:
            return FileLine(path.resolve().relative_to(Path.cwd()).as_posix(), line or 1)
        except ValueError:
            return FileLine(path.as_posix(), line or 1)

    def _is_there(self, node: Node | None) -> bool:
        return node is not None and (self.project_dir / node.original_file_path).is_file()

    # -- in SQL ---------------------------------------------------------------------------------

    def _in_sql(self, file: str, node: Node, name: str) -> int | None:
        """The one line of a file that a name of a node's own code can stand on."""
        content, code = self._text(file), node.raw_code.strip()
        if content is None or not code or content.count(code) != 1:
            return None  # not what was judged
        start = content.index(code)
        line = line_of_name(code, name)
        return None if line is None else content.count("\n", 0, start) + line

    def _text(self, file: str) -> str | None:
        if file not in self._texts:
            try:
                self._texts[file] = (self.project_dir / file).read_text(encoding="utf-8")
            except (OSError, ValueError):
                self._texts[file] = None
        return self._texts[file]

    # -- in yml ---------------------------------------------------------------------------------

    def _in_yml(
        self, file: str, node: Node, column: str | None, *, only_the_column: bool = False
    ) -> int | None:
        """The line of what a yml file says of a node, or of a column of it where it says that."""
        content = self._text(file)
        root = _composed(content) if content is not None else None
        if root is None:
            return None
        if node.resource_type == "test":
            return _line_of_test(root, node)
        entry = _entry_of(root, node)
        if entry is None:
            return None
        if column:
            columns = _columns_called(entry, column)
            if len(columns) == 1:
                return _line(columns[0])
        return None if only_the_column else _line(entry)


def line_of_name(code: str, name: str) -> int | None:
    r"""The line of SQL (or Jinja) where a column is made or named, where only one can be meant.

    Args:
        code: the text.
        name: a column, or a column after the word it is qualified by.

    Example:
        >>> line_of_name("select a,\n  b as c -- not c\nfrom t", "c")
        2
        >>> line_of_name("select a from t where a > 0\n and a < 9", "a") is None
        True
    """
    lines = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code).split("\n")
    qualifier, _, plain = name.rpartition(".")
    word = rf"""["`\[]?(?<!\w){re.escape(plain)}(?!\w)["`\]]?"""
    mentions = [i for i, line in enumerate(lines, 1) if re.search(word, line, re.IGNORECASE)]
    if len(mentions) <= 1:
        return mentions[0] if mentions else None
    if qualifier:
        # Where it is never named without the qualifier, each line names what is meant.
        every = sum(len(re.findall(word, line, re.IGNORECASE)) for line in lines)
        with_it = rf"(?<!\w){re.escape(qualifier)}\.{word}"
        occurrences = sum(len(re.findall(with_it, line, re.IGNORECASE)) for line in lines)
        return mentions[0] if occurrences == every else None
    definitions = [i for i in mentions if re.search(rf"\bas\s+{word}", lines[i - 1], re.IGNORECASE)]
    if not definitions:
        definitions = [
            i
            for i in mentions
            if re.fullmatch(rf"\s*,?\s*(\w+\.)?{word}\s*,?\s*", lines[i - 1], re.IGNORECASE)
        ]
    return definitions[0] if len(definitions) == 1 else None


def _of_package(patch_path: str | None, package: str) -> str | None:
    """The yml file of a node's properties, in its own package."""
    owner, _, path = (patch_path or "").partition("://")
    return path if path and owner == package else None


@cache
def _composed(text: str) -> Any:
    """The nodes of a yml text, with their lines; None where it cannot be read."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        check_bounds(text, "")
        return YAML(typ="safe", pure=True).compose(text)
    except (YAMLError, ValueError, RecursionError, RippleError):
        return None


def _items(node: Any, key: str) -> Iterator[Any]:
    """What is listed below a key of a mapping, more than one of the same name included."""
    for name, value in _pairs(node):
        if name == key and isinstance(value.value, list) and value.id == "sequence":
            yield from value.value


def _pairs(node: Any) -> Iterator[tuple[str, Any]]:
    yield from ((name, value) for name, _, value in _keys(node))


def _keys(node: Any) -> Iterator[tuple[str, Any, Any]]:
    """The keys of a mapping: their names, where they stand or a list of theirs begins, and what they have."""
    if node is not None and node.id == "mapping":
        for key, value in node.value:
            if isinstance(key.value, str):
                yield key.value, value if value.id == "sequence" else key, value


def _below(key: str, *entries: Any) -> Any:
    """What the first of some mappings that has a key, itself or in its ``config``, says of it."""
    mappings = (
        mapping
        for entry in entries
        for mapping in (entry, *(value for name, value in _pairs(entry) if name == "config"))
    )
    return next((value for m in mappings for name, value in _pairs(m) if name == key), None)


def _values_of(item: Any) -> Iterator[Any]:
    """A mapping and what stands below its keys: a generic test may have its config in either."""
    yield item
    yield from (value for _, value in _pairs(item))


def _scalar(node: Any, key: str) -> str | None:
    for name, value in _pairs(node):
        if name == key and isinstance(value.value, str):
            return value.value
    return None


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _called(items: Iterator[Any], name: str) -> list[Any]:
    return [item for item in items if _scalar(item, "name") == name]


def _entry_of(root: Any, node: Node) -> Any:
    """What a yml file declares of a node; None where it does not declare it once."""
    if node.resource_type == "source":
        entries = [
            table
            for source in _called(_items(root, "sources"), node.source_name or "")
            for table in _called(_items(source, "tables"), node.name)
        ]
    else:
        section = _SECTIONS.get(node.resource_type, "")
        entries = _called(_items(root, section), node.name)
    return entries[0] if len(entries) == 1 else None


def _columns_called(entry: Any, column: str) -> list[Any]:
    listed = [
        *_items(entry, "columns"),
        *(c for version in _items(entry, "versions") for c in _items(version, "columns")),
    ]
    return [c for c in listed if (_scalar(c, "name") or "").lower() == column.lower()]


def _line_of_test(root: Any, test: Node) -> int | None:
    item = _test_in(root, test)
    return _line(item) if item is not None else None


def _test_in(root: Any, test: Node) -> Any:
    """A generic test, or the column or node it is on; None where a yml file does not have it once."""
    section, _, name = (test.file_key_name or "").partition(".")
    entries = _called(_items(root, section), name)
    if section == "sources":
        table = (test.refs or test.sources or [None])[-1]
        table_name = table[-1] if isinstance(table, list) else None
        entries = [
            table
            for source in entries
            for table in _called(_items(source, "tables"), table_name or "")
        ]
    if len(entries) != 1:
        return None
    on = entries[0]
    if test.column_name:
        columns = _columns_called(on, test.column_name)
        if len(columns) != 1:
            return on
        on = columns[0]
    kind = test.test_metadata.name if test.test_metadata else ""
    items = [
        item
        for key in ("data_tests", "tests")
        for item in _items(on, key)
        if _kind_of(item).rpartition(".")[2] == kind
    ]
    return items[0] if len(items) == 1 else on


def _kind_of(item: Any) -> str:
    """The generic test that an item of ``data_tests`` asks for."""
    if isinstance(item.value, str):
        return item.value
    test_name = _scalar(item, "test_name")
    return test_name or next((name for name, _ in _pairs(item)), "")
