"""The site that `dbt docs generate` made, enriched in a folder of its own.

The site's app reads manifest.json and catalog.json beside it, and shows descriptions as Markdown. So its code
stays as it is, but for a policy that lets no other script run: a copy of manifest.json has longer descriptions, and columns that the project does not describe.
The same artifacts give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple import __version__
from dbt_ripple.artifacts.decode_json import without_lone_surrogates
from dbt_ripple.errors import RippleError
from dbt_ripple.pages.badges import RedBelow, badges_of_health, badges_of_node, files
from dbt_ripple.pages.docs_descriptions import PROJECT, Descriptions, domain_id
from dbt_ripple.pages.project_document import DescribedNode, ProjectDocument
from dbt_ripple.secrets import scrub, scrub_bytes

BADGES: Final = "badges"
STATIC: Final = "static_index.html"
_BADGE: Final = re.compile(r"[a-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.(?:certified|coverage|slo)\.svg")
"""What badges are called: other pictures in their folder are somebody else's."""
MARK: Final = "dbt_ripple"
"""Key of the manifest's metadata that says that it is enriched."""

_SECTIONS: Final = (
    *("nodes", "sources", "exposures", "metrics", "semantic_models", "saved_queries", "functions"),
)
_PLACES: Final = {
    "MANIFEST": '"MANIFEST.JSON INLINE DATA"',
    "CATALOG": '"CATALOG.JSON INLINE DATA"',
}
_OVERVIEW: Final = "__overview__"
_PICTURE: Final = re.compile(rf"\({BADGES}/([a-z0-9_.-]+\.svg)\)")


class DocsSite(msgspec.Struct, frozen=True):
    """The files of an enriched site, by their paths in its folder."""

    files: dict[str, bytes]

    def write(self, folder: Path) -> None:
        """Write what is not there yet as it should be, and take badges away that are no more.

        Files that are not called as badges are stay.

        Raises:
            RippleError: a link stands where a file or a folder is to be written.
        """
        for name in self.files:
            check_no_links(folder, name)
        for name, content in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.is_file() or file.read_bytes() != content:
                file.write_bytes(content)
        for file in (folder / BADGES).glob("*.svg"):
            if f"{BADGES}/{file.name}" not in self.files and _BADGE.fullmatch(file.name):
                file.unlink()


def check_no_links(folder: Path, name: str) -> None:
    """Refuse to write through a link that stands in a folder for what is written.

    Raises:
        RippleError: there is one.
    """
    path = folder
    for part in Path(name).parts:
        path = path / part
        if path.is_symlink():
            raise RippleError("is a link, and is not written through", str(path), "remove it")


def enriched_site(
    folder: Path, document: ProjectDocument, red_below: RedBelow, *, static: bool = False
) -> DocsSite:
    """The enriched copy of the site in a target folder.

    Args:
        folder: where index.html, manifest.json and catalog.json are.
        document: of the same artifacts.
        red_below: what the project asks of the figures on badges.
        static: whether to make the site in one file, too, as ``dbt docs generate --static`` does.

    Raises:
        RippleError: a file is missing, or is enriched already.
    """
    index, original = _read(folder, "index.html"), _read(folder, "manifest.json")
    catalog = _read(folder, "catalog.json")
    badges = {f"{BADGES}/{name}": scrub(svg).encode() for name, svg in _badges(document, red_below)}
    manifest = _decoded(original, folder / "manifest.json")
    _enrich(manifest, _decoded(catalog, folder / "catalog.json"), document, red_below)
    # Before a policy counts the hashes of what stands in the page.
    enriched, catalog = scrub_bytes(msgspec.json.encode(manifest)), scrub_bytes(catalog)
    contents = {
        "index.html": _only_own_scripts(index),
        "manifest.json": enriched,
        "catalog.json": catalog,
        **badges,
    }
    if static:
        contents[STATIC] = _static(index, enriched, catalog, badges)
    return DocsSite(contents)


def copy_assets(project_dir: Path, target: Path, output: Path) -> None:
    """Copy what the project's ``asset-paths`` name, which its descriptions may show.

    `dbt docs generate` has put it into the target folder.
    """
    from dbt_ripple.governance.ripple_yml import project_file

    paths = project_file(project_dir).get("asset-paths") or []
    for path in paths if isinstance(paths, list) else [paths]:
        source = target / str(path)
        inside = target.resolve() in source.resolve().parents
        if inside and source.is_dir():
            for file in (source, *source.rglob("*")):
                check_no_links(output, str(file.relative_to(target)))
            shutil.copytree(source, output / str(path), dirs_exist_ok=True, ignore=_links)


def _links(folder: str, names: list[str]) -> list[str]:
    """The links among some files: one may lead out of the project."""
    return [name for name in names if Path(folder, name).is_symlink()]


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise RippleError(f"no {name}", str(folder), "run `dbt docs generate` first") from None
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise RippleError(what, str(folder / name), "make it readable") from error


def _decoded(content: bytes, file: Path) -> dict[str, Any]:
    try:
        artifact = msgspec.json.decode(without_lone_surrogates(content))
    except msgspec.DecodeError as error:
        raise RippleError(f"is no JSON ({error})", str(file), "run `dbt docs generate`") from None
    if not isinstance(artifact, dict) or not isinstance(artifact.get("metadata"), dict):
        raise RippleError("is no artifact of dbt", str(file), "run `dbt docs generate`")
    if MARK in artifact["metadata"]:
        fix = "name the target folder of dbt: --target-path"
        raise RippleError("is enriched already", str(file), fix)
    return artifact


def _enrich(
    manifest: dict[str, Any],
    catalog: dict[str, Any],
    document: ProjectDocument,
    red_below: RedBelow,
) -> None:
    descriptions = Descriptions(document, red_below)
    manifest["metadata"][MARK] = {"version": __version__}
    spelled = {
        unique_id: {str(name).lower(): str(name) for name in relation.get("columns") or ()}
        for section in ("nodes", "sources")
        for unique_id, relation in (catalog.get(section) or {}).items()
    }
    for section in _SECTIONS:
        for unique_id, node in (manifest.get(section) or {}).items():
            described = document.nodes.get(unique_id)
            if described is not None:
                node["description"] = descriptions.of_node(described, node.get("description") or "")
                if section in ("nodes", "sources"):
                    _enrich_columns(node, described, spelled.get(unique_id, {}), descriptions)
    _enrich_overview(manifest, document, descriptions)


def _enrich_columns(
    node: dict[str, Any],
    described: DescribedNode,
    catalog: dict[str, str],
    descriptions: Descriptions,
) -> None:
    columns: dict[str, Any] = node.get("columns") or {}
    keys = {name.lower(): name for name in columns}
    for column in described.columns:
        key = keys.get(column.name.lower())
        own = columns[key] if key is not None else None
        text = descriptions.of_column(described, column, (own or {}).get("description") or "")
        if own is not None:
            own["description"] = text
        elif text:
            name = catalog.get(column.name.lower(), column.name)
            columns[name] = {
                "name": name,
                "description": text,
                "meta": {},
                "data_type": column.type,
                "constraints": [],
                "quote": None,
                "tags": [],
            }
    node["columns"] = columns


def _enrich_overview(
    manifest: dict[str, Any], document: ProjectDocument, descriptions: Descriptions
) -> None:
    """Put the health before what the site's first page says: the last overview that is not dbt's own."""
    docs = manifest.setdefault("docs", {})
    shown = docs.get(f"doc.dbt.{_OVERVIEW}")
    for doc in docs.values():
        if doc.get("name") == _OVERVIEW and doc.get("package_name") != "dbt":
            shown = doc
    if shown is None:
        unique_id = f"doc.{document.name}.{_OVERVIEW}"
        shown = docs[unique_id] = {
            "name": _OVERVIEW,
            "resource_type": "doc",
            "package_name": document.name,
            "path": "overview.md",
            "original_file_path": "docs/overview.md",
            "unique_id": unique_id,
            "block_contents": "",
        }
    shown["block_contents"] = descriptions.overview(shown.get("block_contents") or "")


def _badges(document: ProjectDocument, red_below: RedBelow) -> Iterator[tuple[str, str]]:
    name = document.name
    yield from files(PROJECT, badges_of_health(document.health, red_below), name)
    for domain, health in document.domains.items():
        yield from files(domain_id(domain), badges_of_health(health, red_below), domain)
    for unique_id, node in document.nodes.items():
        if node.resource_type not in ("exposure", "asset"):
            yield from files(unique_id, badges_of_node(node, red_below), node.name)


def _static(index: bytes, manifest: bytes, catalog: bytes, badges: dict[str, bytes]) -> bytes:
    """The site in one file, with its pictures in it."""
    page = index.decode()

    def picture(match: re.Match[str]) -> str:
        svg = badges.get(f"{BADGES}/{match[1]}")
        if svg is None:
            return match[0]
        return f"(data:image/svg+xml;base64,{base64.b64encode(svg).decode()})"

    data = {
        "MANIFEST": _PICTURE.sub(picture, manifest.decode()),
        "CATALOG": msgspec.json.encode(
            msgspec.json.decode(without_lone_surrogates(catalog))
        ).decode(),
    }
    for name, place in _PLACES.items():
        before, separator, after = page.partition(place)
        if not separator:
            raise RippleError(
                f"index.html has no place for {name.lower()}.json",
                "--static",
                "leave --static out: this version of dbt makes another kind of site",
            )
        # In a script of HTML, `<` may begin its end; in JSON it stands in strings only.
        page = before + data[name].replace("<", "\\u003c") + after
    return _only_own_scripts(page.encode())


class _Scripts(HTMLParser):
    """The scripts of a page that stand in it, and whether it loads others."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.texts: list[str] = []
        self.loads = False
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self._inside = True
            self.texts.append("")
            self.loads = self.loads or any(name == "src" for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[-1] += data


def _only_own_scripts(page: bytes) -> bytes:
    """The page with a policy by which nothing but its own scripts runs.

    In the results of its search the app shows names, labels, tags, columns and code as HTML: without the
    policy, a script that one of them holds would run. A page that loads scripts is not dbt's own any more,
    but one that somebody has changed; it stays as it is.
    """
    scripts = _Scripts()
    scripts.feed(page.decode())
    scripts.close()
    before, head, after = page.partition(b"<head>")
    if scripts.loads or not head or b"\r" in page:
        return page
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts.texts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    # AngularJS makes functions of its templates.
    policy = f"script-src {allowed} 'unsafe-eval'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'
    return before + head + meta.encode() + after
