"""A project in which everything that somebody may name is named by a hostile text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Naming = Callable[[str], str]
"""From a tame name to the one in the project: a name each."""

COLUMNS = ("c_id", "c_amount", "c_kind", "c_new", "c_total", "c_email")
NODES = ("m_stg", "m_fct", "m_mart", "m_opaque", "m_gone", "m_python", "s_raw", "seed_a")
TESTS = ("t_unique", "t_single", "t_below", "t_kind", "u_unit")
OTHERS = ("e_report", "e_blind", "owner_a", "owner_b", "tag_a", "tier_a", "group_a")


_KINDS = {"m": "model", "s": "source", "t": "test", "e": "exposure", "u": "unit_test"}


def unique_id(node: str, name: Naming) -> str:
    kind = node.split("_")[0]
    return f"{_KINDS.get(kind, kind)}.shop.{name(node)}"


def project(name: Naming, *, head: bool) -> dict[str, Any]:
    """A manifest as dbt writes it: base, or head with an edit of nearly every kind."""

    def q(column: str) -> str:
        return '"' + name(column).replace('"', '""') + '"'

    def relation(node: str) -> str:
        return f'"s".{q(node)}'

    def made(kind: str, node: str, sql: str | None = None, *parents: str, **more: Any) -> Any:
        config = {"tags": [name("tag_a")], "meta": {}, **more.pop("config", {})}
        config.setdefault("materialized", "table" if kind == "model" else kind)
        path = more.pop("path", f"models/{name(node)}.sql")
        return {
            "unique_id": ids[node],
            "name": name(node),
            "resource_type": kind,
            "package_name": "shop",
            "fqn": ["shop", name("folder"), name(node)],
            "path": path,
            "original_file_path": path,
            "schema": "s",
            "alias": name(node),
            "relation_name": relation(node) if kind in ("model", "seed", "source") else None,
            "description": f"{name('said')} of {name(node)}",
            "compiled": sql is not None,
            "compiled_code": sql,
            "raw_code": sql or "",
            "language": "sql",
            "checksum": {"name": "sha256", "checksum": f"{sql}"},
            "tags": config["tags"],
            "meta": config["meta"],
            "config": config,
            "columns": {},
            "depends_on": {"macros": [], "nodes": [ids[parent] for parent in parents]},
            **more,
        }

    def column(column: str, **more: Any) -> Any:
        return {"name": name(column), "description": name("said"), "meta": {}, "tags": [], **more}

    def columns(*listed: str, **types: str) -> Any:
        return {name(c): column(c, data_type=types.get(c)) for c in listed}

    def tested(node: str, column: str) -> dict[str, Any]:
        return {
            "test_metadata": {"name": "unique", "kwargs": {"column_name": name(column)}},
            "column_name": name(column),
            "attached_node": ids[node],
            "config": {"severity": "ERROR", "fail_calc": "count(*)", "warn_if": "!= 0"},
        }

    ids = {node: unique_id(node, name) for node in (*NODES, *TESTS, "e_report", "e_blind")}
    owner = {"meta": {"owner": name("owner_a"), "criticality": name("tier_a")}}
    raw, stg = relation("s_raw"), relation("m_stg")
    amount = f"{q('c_amount')} * 2" if head else q("c_amount")
    kind = "c_new" if head else "c_kind"
    nodes = [
        made("model", "m_stg", f"select {q('c_id')}, {amount} as {q('c_amount')}, {q('c_kind')} as "
             f"{q(kind)} from {raw}", "s_raw", config=owner),
        made("model", "m_fct", f"select {q('c_kind')}, sum({q('c_amount')}) as {q('c_total')} from "
             f"{stg} group by 1", "m_stg", columns=columns("c_kind", "c_total"), config=owner),
        made("model", "m_mart", f"select {q('c_id')}, {q('c_amount')} from {stg} where "
             f"{q('c_amount')} > {1 if head else 0}", "m_stg",
             columns=columns("c_id", *([] if head else ["c_amount"]), c_id="bigint"),
             config={"contract": {"enforced": True}, **owner}, access="public"),
        made("model", "m_opaque", f"this is {'not' if head else 'nor'} ( sql {q('c_id')}", "m_mart"),
        made("model", "m_python", f"# {name('said')}", "m_mart",
             path=f"models/{name('m_python')}.py") | {"language": "python"},
        made("seed", "seed_a", None, path=f"seeds/{name('seed_a')}.csv"),
        made("test", "t_unique", f"select {q('c_id')} from {stg} group by 1 having count(*) > 1",
             "m_stg", **tested("m_stg", "c_id")),
        made("test", "t_single", f"select * from {stg} where {q('c_amount')} < 0", "m_stg"),
        made("test", "t_below", f"select * from {relation('m_mart')} where {q('c_amount')} is null",
             "m_mart", **tested("m_mart", "c_amount")),
        made("test", "t_kind", f"select {q('c_kind')} from {stg}", "m_stg"),
    ]  # fmt: skip
    if not head:
        nodes.append(made("model", "m_gone", f"select {q('c_id')} from {stg}", "m_stg"))
    source = made("source", "s_raw", None, path="models/src.yml") | {
        "source_name": name("src"),
        "identifier": name("s_raw"),
        "columns": columns("c_id", "c_amount", "c_kind")
        | {name("c_email"): column("c_email", meta={"pii": "email"})},
    }
    exposures = [
        made("exposure", "e_report", None, "m_mart", "m_fct", path="models/e.yml")
        | {
            "type": "dashboard",
            "owner": {"name": name("owner_b"), "email": f"{name('owner_b')}@x.example"},
            "meta": {"referenced_columns": [name("c_amount"), name("c_total")]},
            "url": f"https://{name('owner_b')}",
        },
        made("exposure", "e_blind", None, "m_opaque", path="models/e.yml")
        | {"type": "notebook", "owner": {"name": name("owner_b")}},
    ]
    return {
        "metadata": {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
            "dbt_version": "1.11.0",
            "generated_at": "2026-01-01T00:00:00Z",
            "project_name": "shop",
            "adapter_type": "duckdb",
        },
        "nodes": {node["unique_id"]: node for node in nodes},
        "sources": {source["unique_id"]: source},
        "exposures": {exposure["unique_id"]: exposure for exposure in exposures},
        "metrics": {},
        "unit_tests": {
            ids["u_unit"]: made("unit_test", "u_unit", None, "m_stg", path="models/u.yml")
            | {"model": name("m_stg"), "given": [], "expect": {"rows": []}}
        },
        "macros": {
            f"macro.shop.{name('macro_a')}": {
                "unique_id": f"macro.shop.{name('macro_a')}",
                "name": name("macro_a"),
                "package_name": "shop",
                "original_file_path": f"macros/{name('macro_a')}.sql",
                "macro_sql": f"{{% macro x() %}}{name('said')}{{% endmacro %}}",
                "depends_on": {"macros": []},
            }
        },
        "groups": {},
        "disabled": {},
        "parent_map": {},
        "child_map": {},
    }


def write(folder: Path, name: Naming) -> None:
    """The project's folder: head in ``target``, base in ``state``."""
    for side, head in (("target", True), ("state", False)):
        (folder / side).mkdir(parents=True, exist_ok=True)
        text = json.dumps(project(name, head=head))
        (folder / side / "manifest.json").write_text(text)
