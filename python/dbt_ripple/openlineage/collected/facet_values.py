"""The values of facets, whatever a producer wrote in their place; words of the ids that are made of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from dbt_ripple.artifacts.assets_file import AssetColumn

Facets = dict[str, Any]
"""Facets by their names, as they came."""

LONGEST_NAME: Final = 2_000
"""Characters of a name; what is longer is no name."""


def facet(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A part of an event that is an object; empty where it is not there, or anything else."""
    content = of.get(name)
    return content if isinstance(content, dict) else {}


def dicts(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text(value: object, longest: int | None = LONGEST_NAME) -> str:
    """A text without white space around it; empty of anything else, and of what is too long for a name."""
    if not isinstance(value, str) or (longest is not None and len(value) > longest):
        return ""
    return value.strip()


def columns_of_schema(facets: Facets) -> tuple[AssetColumn, ...]:
    """The columns in the facet `schema`, with the personal data that the facet `tags` names."""
    pii = {
        text(tag.get("field")).casefold(): text(tag.get("value"))
        for tag in dicts(facet(facets, "tags").get("tags"))
        if text(tag.get("key")).lower() == "pii" and text(tag.get("field"))
    }
    columns: dict[str, AssetColumn] = {}
    for entry in dicts(facet(facets, "schema").get("fields")):
        name = text(entry.get("name"))
        if name:
            columns.setdefault(
                name.casefold(),
                AssetColumn(
                    name=name,
                    type=text(entry.get("type"), None) or None,
                    description=text(entry.get("description"), None),
                    pii=pii.get(name.casefold()) or None,
                ),
            )
    return tuple(columns.values())


def owner_of(facets: Facets) -> dict[str, str]:
    """The first owner in the facet `ownership`, as `ripple_assets.yml` has it."""
    for owner in dicts(facet(facets, "ownership").get("owners")):
        name = text(owner.get("name"))
        if name:
            return {"email" if "@" in name else "name": name}
    return {}


def tags_of(facets: Facets) -> tuple[str, ...]:
    """The tags in the facet `tags` that are of the whole dataset or job."""
    tags = []
    for tag in dicts(facet(facets, "tags").get("tags")):
        key, value = text(tag.get("key")), text(tag.get("value"))
        if key and not text(tag.get("field")):
            tags.append(key if value.lower() in ("", "true") else f"{key}:{value}")
    return tuple(dict.fromkeys(tags))


_NO_NAME: Final = re.compile(r"[\s:+@,'\"\x00-\x1f\x7f]+")


def spelled(name: str) -> str:
    """A name as it may stand in an id.

    Example:
        >>> spelled("daily load: 'orders'"), spelled("__main__.f")
        ('daily_load_orders', '__main__.f')
    """
    return "_".join(filter(None, _NO_NAME.split(name))) or "_"


def short_hash(key: object) -> str:
    """Eight characters by which keys differ."""
    return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:8]
