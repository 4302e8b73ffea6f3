"""The explorer: a project's lineage as one page that needs nothing else, no server and no network.

The page is a shell, a style sheet, a script and the packed document. Its Content Security Policy
allows this one style sheet and this one script, by their digests, and no request at all.

Ten thousand nodes have a hundred thousand columns and more edges: so in the packed document texts that repeat stand
once in a table, columns and edges in arrays of numbers, and the whole is compressed. The page unpacks it
(``explorer/src/data.js``), which is the one reader of this format.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib import resources
from typing import Any, Final

import msgspec
from jinja2 import Environment

from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.pages.explorer_compare import Compared
from dbt_ripple.pages.project_document import DescribedColumn, DescribedNode, Link, ProjectDocument
from dbt_ripple.rendering.escaping import shown
from dbt_ripple.secrets import scrub_bytes

VALUE: Final = 1
DECIDES: Final = 2
OF_ROWS: Final = 3
"""What a link is to the page: the value goes on, it decides about a value, or rows are one of its ends."""

MAY_READ: Final = 4
"""Added to the three where it is not known whether there is such a link."""

_NODE_FIELDS: Final = (
    *("unique_id", "name", "label", "resource_type", "asset_type", "package_name", "path"),
    *("relation", "materialized", "layer", "tags", "description", "owner", "owner_name"),
    *("owner_email", "owner_channel", "domain", "group", "access", "criticality", "certified"),
    *("canonical", "contract_version", "contract_enforced", "contract_versions", "pii", "status"),
    *("reason", "last_run", "last_success", "freshness", "path_is_complete", "blast_radius"),
)
_TEST_FIELDS: Final = (
    *("unique_id", "name", "kind", "severity", "is_slo", "description", "last_run", "failures"),
    "message",
)


class _Texts:
    """A table of texts; 0 is none."""

    def __init__(self) -> None:
        self.all: list[str | None] = [None]
        self._places: dict[str, int] = {}

    def __call__(self, text: str | None) -> int:
        if text is None:
            return 0
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.all)
            self.all.append(text)
        return place


class _Columns:
    """The columns of all nodes in one row of arrays; a vertex of the graph is a place in it.

    Behind the columns stand the sets of rows, one a node.
    """

    def __init__(self, texts: _Texts) -> None:
        self.texts = texts
        self.starts = [0]
        self.places: dict[tuple[str, str], int] = {}
        self.fields: dict[str, list[Any]] = {
            name: []
            for name in (
                "name",
                "type",
                "description",
                "expression",
                "pii",
                "followed",
                "tests",
                "blast",
            )
        }

    def add(
        self,
        node: DescribedNode,
        named: Iterable[str],
        tests: Mapping[str, int],
    ) -> None:
        """Add those of the next node: described ones, and what only links or changes name."""
        for column in node.columns:
            self._one(node.unique_id, column.name, column, tests)
        for name in named:
            if (node.unique_id, name) not in self.places:
                self._one(node.unique_id, name, None, tests)
        self.starts.append(len(self.fields["name"]))

    def _one(
        self, unique_id: str, name: str, column: DescribedColumn | None, tests: Mapping[str, int]
    ) -> None:
        self.places[unique_id, name] = len(self.fields["name"])
        texts, to = self.texts, self.fields
        pii = column.pii if column else None
        to["name"].append(texts(name))
        to["type"].append(texts(column.type if column else None))
        to["description"].append(texts(column.description if column else None))
        to["expression"].append(texts(column.expression if column else None))
        to["pii"].append(
            0
            if pii is None
            else [texts(t) for t in (pii.pii, pii.origin, pii.reason, " → ".join(pii.path))]
        )
        to["followed"].append(int(column is not None and column.is_followed))
        to["tests"].append(
            [tests[test] for test in column.tests if test in tests]
            if column and column.tests
            else 0
        )
        to["blast"].append(column.blast_radius if column else 0)


def packed(document: ProjectDocument, compared: Compared | None = None) -> str:
    """The document as text of letters, digits, ``+``, ``/`` and ``=`` only.

    The same document gives the same text.

    Args:
        document: of head.
        compared: the change from base to it.
    """
    content = scrub_bytes(msgspec.json.encode(unpacked(document, compared)))
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode("ascii")


def unpacked(document: ProjectDocument, compared: Compared | None = None) -> dict[str, Any]:
    """The same before it is compressed."""
    texts = _Texts()
    nodes = {**document.nodes, **(compared.removed if compared else {})}
    links = [*document.links, *(compared.removed_links if compared else ())]
    tests = {unique_id: number for number, unique_id in enumerate(document.tests)}
    places = {unique_id: number for number, unique_id in enumerate(nodes)}
    columns = _Columns(texts)
    named = _named(links, compared)
    for node in nodes.values():
        columns.add(node, named.get(node.unique_id, ()), tests)
    of_columns = len(columns.fields["name"])

    def vertex(unique_id: str, column: str) -> int:
        if column == ROWS:
            return of_columns + places[unique_id]
        return columns.places[unique_id, column]

    kinds: dict[tuple[tuple[str, str, bool], ...], int] = {}
    ends: dict[str, list[int]] = {"parent": [], "child": [], "class": [], "kinds": []}
    for link in links:
        if link.parent_id in places and link.child_id in places:
            ends["parent"].append(vertex(*link.parent))
            ends["child"].append(vertex(*link.child))
            ends["class"].append(_class(link))
            of_link = tuple((kind.type, kind.subtype, kind.masking) for kind in link.kinds)
            ends["kinds"].append(kinds.setdefault(of_link, len(kinds)))
    return {
        "project": {
            "name": document.name,
            "adapter": document.adapter_type,
            "dbt": document.dbt_version,
            "ripple": document.ripple_version,
            "generated": _moment(document.generated_at),
            "has_catalog": document.has_catalog,
            "notes": document.notes,
            "health": document.health,
        },
        "node_fields": _NODE_FIELDS,
        "nodes": [
            [_node_value(getattr(node, name), texts) for name in _NODE_FIELDS]
            for node in nodes.values()
        ],
        "parents": [[places[p] for p in node.parents if p in places] for node in nodes.values()],
        "node_tests": [
            [tests[test] for test in node.tests if test in tests] for node in nodes.values()
        ],
        "test_fields": _TEST_FIELDS,
        "tests": [
            [_node_value(getattr(test, name), texts) for name in _TEST_FIELDS]
            for test in document.tests.values()
        ],
        "starts": columns.starts,
        "columns": columns.fields,
        "links": ends,
        "kinds": list(kinds),
        "compare": None if compared is None else compared.document,
        "texts": texts.all,
    }


def _named(links: Iterable[Link], compared: Compared | None) -> dict[str, dict[str, None]]:
    """The columns that links and changes name, by node."""
    named: dict[str, dict[str, None]] = {}
    for link in links:
        for unique_id, column in (link.parent, link.child):
            if column != ROWS:
                named.setdefault(unique_id, {})[column] = None
    for unique_id, column in compared.columns() if compared else ():
        named.setdefault(unique_id, {})[column] = None
    return named


def _class(link: Link) -> int:
    if ROWS in (link.parent_column, link.child_column):
        base_class = OF_ROWS
    else:
        base_class = VALUE if link.is_value else DECIDES
    return base_class + MAY_READ if link.may_read else base_class


def _node_value(value: Any, texts: _Texts) -> Any:
    """Texts by their number; what is structured as it is, with moments as ISO 8601."""
    if isinstance(value, str):
        return texts(value)
    if isinstance(value, datetime):
        return texts(_moment(value))
    if isinstance(value, bool):
        return int(value)
    return value


def _moment(value: datetime | None) -> str | None:
    return value.isoformat() if value is not None else None


_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="dbt-ripple {{ version }}">
<title>{{ title }}</title>
<link rel="icon" href="data:,">
<style>{{ style|safe }}</style>
</head>
<body>
<noscript>This page draws lineage with JavaScript, which is turned off.</noscript>
<div id="app"></div>
<script type="application/octet-stream" id="data">{{ data }}</script>
<script>{{ script|safe }}</script>
</body>
</html>
"""

_ENDS: Final = re.compile(r"</(?=style|script)|<!--", re.IGNORECASE)


def explorer_page(document: ProjectDocument, compared: Compared | None = None) -> str:
    """The page, of ASCII characters but for the project's name in its title.

    The same document gives the same page.

    Args:
        document: of the project.
        compared: a change to it; None for a page without one.

    Raises:
        RippleError: this installation has no bundle.
    """
    script, style = _bundled("explorer.js"), _bundled("explorer.css")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_digest(script)}",
            f"style-src {_digest(style)}",
            "img-src data: blob:",  # its pictures for export, which it draws itself
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    page = Environment(autoescape=True).from_string(_PAGE)
    return page.render(
        policy=policy,
        version=document.ripple_version,
        title=f"{shown(document.name)}: lineage",
        style=style,
        script=script,
        data=packed(document, compared),
    )


def _bundled(name: str) -> str:
    """A part of the bundle, which the build of the package makes.

    Raises:
        RippleError: it is not there.
    """
    file = resources.files("dbt_ripple.pages").joinpath("bundle", name)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RippleError(
            "this installation of dbt-ripple was built without the explorer's page",
            str(file),
            "in a clone: `make explorer`; else install the released wheel",
        ) from None
    # The bundler writes no such thing; if it did, the page would end there.
    if _ENDS.search(text):
        raise RippleError("this would end the page's script or style sheet early", str(file))
    return text


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
