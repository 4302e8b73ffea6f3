"""Pages of plain HTML: no script, no request, everything that a project says is text.

Templates are in ``templates/``. What is put into them is escaped, and what is not seen (control and bidi
characters) is written out, so that names read as they are and do nothing. The page itself forbids scripts
and requests (its Content Security Policy).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple.rendering.escaping import shown
from dbt_ripple.rendering.incident import moment

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(template: str, values: Mapping[str, Any]) -> str:
    """A page of a template.

    Args:
        template: its file in ``templates/``.
        values: by the names that it uses.
    """
    return _environment().get_template(template).render(policy=POLICY, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dbt_ripple.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"moment": moment, "lines": _lines, "name": _name}
    return environment


def _plain(value: Any) -> Any:
    """What stands for a value: nothing for None, and no character that is not seen."""
    if value is None:
        return ""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return shown(value)
    return value


def _lines(text: str) -> Markup:
    """Text of several lines, each as it is."""
    from markupsafe import Markup, escape

    rows = text.replace("\r\n", "\n").split("\n")
    return Markup("\n").join(
        Markup("\t").join(escape(shown(part)) for part in row.split("\t")) for row in rows
    )


def _name(text: str) -> Markup:
    """A name that is broken, where it has to be, behind an underscore or a dot."""
    from markupsafe import Markup

    return Markup("<wbr>").join(re.findall(r"[^_.]*[_.]+|[^_.]+", shown(text)))
