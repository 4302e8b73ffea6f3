"""The explorer: a project's lineage as one page that needs nothing else, no server and no network.

The page is a shell, a style sheet, a script and the packed document. Its Content Security Policy
allows this one style sheet and this one script, by their digests, and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from typing import Final

from jinja2 import Environment

from dbt_ripple.errors import RippleError
from dbt_ripple.pages.explorer_compare import Compared
from dbt_ripple.pages.explorer_data import packed
from dbt_ripple.pages.project_document import ProjectDocument
from dbt_ripple.rendering.escaping import shown

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
