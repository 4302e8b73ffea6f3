"""Markdown for the site of `dbt docs`: text that it shows as it is, and links to its pages.

The site renders descriptions with an old version of marked, which escapes HTML. But it also shows them

* cut at any place and as HTML, among the results of its search: so nothing written here may be markup to a
  browser, in code neither;
* raw, in one line, in its table of columns: so what need not be escaped is not.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote

from dbt_ripple.rendering.escaping import one_line, shown

PAGES: Final = frozenset(
    """
    analysis exposure function metric model operation saved_query seed semantic_model snapshot source
    test unit_test
    """.split()
)
"""Resource types that have a page of their own in the site."""

LONGEST_NAME: Final = 120
LONGEST_SQL: Final = 300

_SPECIAL: Final = re.compile(
    r"""[&<>"'\\`*\[\]{}|~!]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.|^\s*(?:\d+[.)]|[-+#=])""",
    re.IGNORECASE,
)
_MARKUP: Final = re.compile(r"[`]|<(?=[A-Za-z/!?])")


def text(value: str, longest: int = LONGEST_NAME) -> str:
    r"""What somebody wrote, in one line, so that it is shown and means nothing.

    Example:
        >>> text("a*b of <c>"), text("fct_orders")
        ('a&#42;b of &#60;c&#62;', 'fct_orders')
    """
    line = one_line(shown(value), longest)
    escaped = _SPECIAL.sub(lambda match: "".join(f"&#{ord(c)};" for c in match[0]), line)
    if any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in line):
        # Read from the right on its own, so that what stands beside it keeps its place.
        return f"&#8296;{escaped}&#8297;"
    return escaped


def sql(expression: str) -> str:
    """An expression as code; as text, where as code it would mean something to a browser.

    Example:
        >>> sql("sum(amount)"), sql("'<b>'")
        ('`sum(amount)`', '&#39;&#60;b&#62;&#39;')
    """
    line = one_line(shown(expression), LONGEST_SQL)
    if _MARKUP.search(line):
        return text(line, LONGEST_SQL)
    return f"`{line}`"


def link(label: str, unique_id: str, resource_type: str, section: str = "") -> str:
    """A link to the page of a node; its name alone where there is no such page.

    Example:
        >>> link("orders", "model.shop.orders", "model", "columns")
        '[orders](#!/model/model.shop.orders#columns)'
    """
    if resource_type not in PAGES:
        return text(label)
    path = quote(unique_id, safe="")
    return f"[{text(label)}](#!/{resource_type}/{path}{'#' if section else ''}{section})"


def cell(markdown: str) -> str:
    """Markdown as a cell of a table: `sql` leaves bars in code as they are."""
    return markdown.replace("|", "\\|")
