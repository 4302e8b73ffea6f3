"""What people ask about a node: its kind of asset, owner, contract version and criticality.

dbt has no field for most of this, so projects keep it in ``meta``. Only these functions decide
which keys are read.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypedDict

from dbt_ripple.artifacts.project import Column, Group, Node, Project, version_text

_BY_RESOURCE_TYPE: Final = {
    "source": "table",
    "seed": "table",
    "snapshot": "table",
    "model": "dbt_model",
    "dataset": "table",
}

_BY_EXPOSURE_TYPE: Final = {"ml": "ml_model"}

_CHANNELS: Final = ("slack", "slack_channel", "owner_channel")
"""Keys under which people say where they are paged."""

_ADDRESS: Final = re.compile(r"[^@\s]+@[^@\s]+")
"""Of an owner that is one text: whether it is where one writes to."""

_UNIQUE: Final = frozenset({"unique", "expect_compound_columns_to_be_unique"})
_KEY_ARGUMENTS: Final = ("columns", "combination_of_columns", "column_list")

NO_PII: Final = frozenset({"", "none", "no", "false"})
"""Values of ``meta.pii`` that say there is none."""


def asset_type(node: Node) -> str:
    """The kind of asset, in lower case: table, dbt_model, dag, spark_job, dashboard, ...

    An exposure is what its ``meta.asset_type`` says, or else its dbt type.

    Example:
        >>> asset_type(Node(resource_type="source"))
        'table'
        >>> asset_type(Node(resource_type="exposure", type="ml", meta={"asset_type": "spark job"}))
        'spark_job'
        >>> asset_type(Node(resource_type="exposure", type="ml"))
        'ml_model'
    """
    if node.resource_type == "exposure":
        declared = node.meta.get("asset_type")
        if isinstance(declared, str) and declared.strip():
            return "_".join(declared.replace("-", " ").lower().split())
        kind = node.type or node.resource_type
        return _BY_EXPOSURE_TYPE.get(kind, kind.lower())
    if node.resource_type == "asset" and node.type:
        return node.type
    return _BY_RESOURCE_TYPE.get(node.resource_type, node.resource_type)


def owner(node: Node, project: Project) -> str | None:
    """Who answers for the node: its group's owner, its own (exposures), or ``meta.owner``.

    The name where there is one, else the email; ``None`` when nobody is named.
    """
    return _person(_owner(node, project))


def _owner(node: Node, project: Project) -> Any:
    """The first who is declared to own it: of its group, its own (exposures), of its meta."""
    group = _group(node, project)
    owners = (group.owner if group else None, node.owner, node.meta.get("owner"))
    return next((one for one in owners if _person(one)), None)


def _group_meta(node: Node, project: Project) -> dict[str, Any]:
    group = _group(node, project)
    meta = group.config.get("meta") if group else None
    return meta if isinstance(meta, dict) else {}


def owner_name(node: Node, project: Project) -> str | None:
    """The name of the one who answers for the node (`owner`), where a name is given."""
    owner = _owner(node, project)
    if isinstance(owner, dict):
        return _person(owner.get("name"))
    people = _person(owner)
    return None if people and _ADDRESS.fullmatch(people) else people


def owner_email(node: Node, project: Project) -> str | None:
    """Where the owner is written to: the email of the same person, or ``meta.owner_email``."""
    owner = _owner(node, project)
    if isinstance(owner, dict):
        address = _person(owner.get("email"))
    else:
        people = _person(owner)
        address = people if people and _ADDRESS.fullmatch(people) else None
    return _text(node.meta.get("owner_email")) or address


def owner_channel(node: Node, project: Project) -> str | None:
    """Where the owner is paged: ``meta.slack``, or what the owner or the group says of itself.

    Each may be called ``slack``, ``slack_channel`` or ``owner_channel``.
    """
    owner = _owner(node, project)
    places = [node.meta, owner if isinstance(owner, dict) else {}, _group_meta(node, project)]
    return next((c for p in places for key in _CHANNELS if (c := _text(p.get(key)))), None)


class Ownership(TypedDict):
    """Who answers for a node, as answers have it."""

    owner: str | None
    owner_name: str | None
    owner_email: str | None
    owner_channel: str | None


def ownership(node: Node | None, project: Project) -> Ownership:
    """Who answers for a node, and where they are reached; nobody for what is no node."""
    if node is None:
        return Ownership(owner=None, owner_name=None, owner_email=None, owner_channel=None)
    return Ownership(
        owner=owner(node, project),
        owner_name=owner_name(node, project),
        owner_email=owner_email(node, project),
        owner_channel=owner_channel(node, project),
    )


def domain(node: Node, project: Project) -> str | None:
    """The part of the business it belongs to: ``meta.domain``, its group's, or the group's name."""
    domain = _text(node.meta.get("domain")) or _text(_group_meta(node, project).get("domain"))
    return domain or _text(node.group)


def contract_version(node: Node) -> str | None:
    """The version of what the node promises: the model's ``version``, or ``meta.contract_version``.

    Example:
        >>> contract_version(Node(version=2, meta={"contract_version": "7"}))
        '2'
        >>> contract_version(Node(meta={"contract_version": 1.1}))
        '1.1'
    """
    if node.version is not None:
        return version_text(node.version)
    declared = node.meta.get("contract_version")
    if isinstance(declared, bool) or not isinstance(declared, str | int | float):
        return None
    return version_text(declared) or None


def criticality(node: Node) -> str | None:
    """``meta.criticality`` as text, ``None`` where it is not given."""
    return _text(node.meta.get("criticality"))


def is_certified(node: Node) -> bool:
    """Whether ``meta.certified`` is true."""
    return _flag(node.meta.get("certified"))


def is_canonical(node: Node) -> bool:
    """Whether ``meta.canonical`` is true."""
    return _flag(node.meta.get("canonical"))


def column_pii(column: Column) -> str | None:
    """The kind of personal data a column holds, ``None`` where it holds none.

    It is the column's ``meta.pii`` (``true`` gives ``pii``), or ``pii`` for a column tagged so.

    Example:
        >>> column_pii(Column(name="email", meta={"pii": "email"}))
        'email'
        >>> column_pii(Column(name="id", meta={"pii": "none"}, tags=["pii"])) is None
        True
        >>> column_pii(Column(name="id", tags=["PII"]))
        'pii'
    """
    declared = column.meta.get("pii")
    if declared is None:
        return "pii" if any(tag.lower() == "pii" for tag in column.tags) else None
    if isinstance(declared, bool):
        return "pii" if declared else None
    kind = _text(declared)
    return None if kind is None or kind.lower() in NO_PII else kind


def declassified(column: Column) -> str | None:
    """Why a column that personal data reaches holds none: ``meta.pii: none`` with a reason.

    The reason is ``meta.pii_reason``; without one nothing is declassified, and this is ``None``.

    Example:
        >>> declassified(Column(meta={"pii": "none", "pii_reason": "only the domain is kept"}))
        'only the domain is kept'
        >>> declassified(Column(meta={"pii": "none"})) is None
        True
    """
    declared = column.meta.get("pii")
    denied = declared is False or (isinstance(declared, str) and declared.strip().lower() in NO_PII)
    return _text(column.meta.get("pii_reason")) if denied else None


def has_pii(node: Node) -> bool:
    """Whether any declared column holds personal data, or the node itself is declared to."""
    as_column = Column(meta=node.meta, tags=node.tags)
    return column_pii(as_column) is not None or any(
        column_pii(column) is not None for column in node.columns.values()
    )


def masking_functions(project: Project) -> frozenset[str]:
    """SQL functions that mask their arguments, as far as the project says so, in lower case.

    Those of the var ``ripple_masking_functions``, which the package's model ``pii_columns`` carries
    as ``meta.masking_functions`` (dbt writes no vars into its artifacts), and dbt functions with
    ``meta.masking: true``. Where others decide that (`Project.masking`), those.
    """
    if project.masking is not None:
        return project.masking
    functions = set()
    for node in (*project.hidden.values(), *project.nodes.values()):
        if node.package_name == "dbt_ripple":
            declared = node.meta.get("masking_functions")
            names = (
                [declared]
                if isinstance(declared, str)
                else declared
                if isinstance(declared, list)
                else []
            )
            functions |= {str(name).strip().lower() for name in names}
        elif node.resource_type == "function" and _flag(node.meta.get("masking")):
            functions.add(node.name.lower())
    return frozenset(functions - {""})


def is_own(node: Node, project: Project) -> bool:
    """Whether the repository holds it: the project itself, or a package of the repository."""
    return node.package_name == project.name or node.package_name in project.local_packages


def is_public(node: Node) -> bool:
    """Whether anybody may see it: ``meta.public`` is true, or it has the tag ``public``.

    dbt's ``access: public`` is something else: other projects of the same shop may refer to it.

    Example:
        >>> is_public(Node(tags=["Public"])), is_public(Node(access="public"))
        (True, False)
        >>> is_public(Node(tags=["public"], meta={"public": False}))
        False
    """
    declared = node.meta.get("public")
    return (
        any(tag.lower() == "public" for tag in node.tags) if declared is None else _flag(declared)
    )


def has_tested_key(node: Node, project: Project) -> bool:
    """Whether data tests watch over a key of the node: it is unique, and never null.

    Unique says a generic test whose name begins with ``unique`` (``unique``,
    ``unique_combination_of_columns`` of dbt_utils), or
    ``expect_compound_columns_to_be_unique`` of dbt_expectations. Never null says, of each of its
    columns, ``not_null`` or a constraint ``not_null`` or ``primary_key`` of an enforced contract.
    """
    unique: list[list[str]] = []
    not_null: set[str] = set()
    for child in project.children.get(node.unique_id, ()):
        test = project.nodes[child]
        if test.test_metadata is None or test.attached_node not in (None, node.unique_id):
            continue
        kind = test.test_metadata.name
        columns = _tested_columns(test)
        if kind == "not_null":
            not_null.update(columns)
        elif kind in _UNIQUE or kind.startswith("unique_"):
            unique.append(columns)
    if node.contract_enforced:
        for constraint in (*node.constraints, *_column_constraints(node)):
            if constraint.get("type") in ("not_null", "primary_key"):
                not_null.update(str(column).lower() for column in constraint.get("columns") or ())
    return any(columns and not_null.issuperset(columns) for columns in unique)


def _column_constraints(node: Node) -> list[dict[str, Any]]:
    return [
        {**constraint, "columns": [column.name or name]}
        for name, column in node.columns.items()
        for constraint in column.constraints
    ]


def _tested_columns(test: Node) -> list[str]:
    """The columns a generic test is about, in lower case."""
    kwargs = test.test_metadata.kwargs if test.test_metadata else {}
    names = [test.column_name or kwargs.get("column_name")]
    for argument in _KEY_ARGUMENTS:
        columns = kwargs.get(argument)
        names += columns if isinstance(columns, list) else [columns]
    return [name.strip('`"[] ').lower() for name in names if isinstance(name, str)]


def referenced_columns(node: Node) -> list[str] | None:
    """The columns a consumer is known to read, from ``meta.referenced_columns`` of an exposure.

    Entries are ``column`` or ``node.column``; ``None`` when it is not given, so that everything the
    exposure depends on has to be taken as read.
    """
    declared = node.meta.get("referenced_columns")
    if isinstance(declared, str):
        return [declared]
    if isinstance(declared, dict):
        return [
            f"{name}.{column}"
            for name, columns in declared.items()
            for column in (columns if isinstance(columns, list) else [columns])
        ]
    return [str(item) for item in declared] if isinstance(declared, list) else None


def _group(node: Node, project: Project) -> Group | None:
    if not node.group:
        return None
    groups = [group for group in project.groups.values() if group.name == node.group]
    # Two packages may have a group of the same name; a node's own package comes first.
    groups.sort(key=lambda group: group.package_name != node.package_name)
    return groups[0] if groups else None


def _person(value: Any) -> str | None:
    if isinstance(value, dict):
        return _person(value.get("name")) or _person(value.get("email"))
    if isinstance(value, list):
        return ", ".join(filter(None, map(_person, value))) or None
    return _text(value)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, bool | dict | list):
        return None
    return str(value).strip() or None


def _flag(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in {"true", "yes"})
