"""Markdown for the site of `dbt docs`: text that it shows as it is, and links to its pages.

The site renders descriptions with an old version of marked, which escapes HTML. But it also shows them

* cut at any place and as HTML, among the results of its search: so nothing written here may be markup to a
  browser, in code neither;
* raw, in one line, in its table of columns and among the results of its search: so what need not be
  escaped is not, and where links lead is told behind the text (`referenced`).
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


def referenced(markdown: str, before: str) -> str:
    """Markdown of this module with the targets of its links behind it, so that its words read as they are.

    Args:
        markdown: made of `text`, `sql` and `link`.
        before: what somebody wrote and stands before it; what is in brackets there stays as it is.

    Example:
        >>> print(referenced("From [a](#!/model/p.a) and [b](#!/model/p.b).", "see [b]"))
        From [a] and [b][ripple-2].
        <BLANKLINE>
        [a]: #!/model/p.a
        [ripple-2]: #!/model/p.b
    """
    keys: dict[tuple[str, str], str] = {}
    taken = before.lower()

    def short(found: re.Match[str]) -> str:
        label, target = found["label"], found["target"]
        if label is None:
            return found[0]  # code
        key = keys.get((label, target))
        if key is None:
            free = f"[{label}]".lower() not in taken and label.lower() not in map(
                str.lower, keys.values()
            )
            key = keys[label, target] = label if free else f"ripple-{len(keys) + 1}"
        return f"[{label}]" if key == label else f"[{label}][{key}]"

    said = _CODE_OR_LINK.sub(short, markdown)
    if not keys:
        return said
    # A label alone is a link only where no bracket or parenthesis follows it.
    return "\n".join([said, "", *(f"[{key}]: {target}" for (_, target), key in keys.items())])


_CODE_OR_LINK: Final = re.compile(r"`[^`]*`|\[(?P<label>[^\[\]]+)\]\((?P<target>#!/[^()\s]*)\)")


def cell(markdown: str) -> str:
    """Markdown as a cell of a table: `sql` leaves bars in code as they are."""
    return markdown.replace("|", "\\|")
