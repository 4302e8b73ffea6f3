"""What of head certainly fails: what no engine can parse, and what failed in base's build and fails again.

Of models and tests that an edit made into what no engine can parse, only what stands otherwise on head than on base is
looked at, and only what is certain counts (`flow.syntax_errors`); of base's own mistakes the change is not to blame.

A build may fail by the data (a cast, a lock, a quota), and then head's may pass. So of base's failures these repeat
(`fail_again`), where everything that decides them is unchanged, and stands in the project alone:

* *By its config.* A macro of the materialization refuses it (``partition_by must be a list``): run with the
  config, which is the same on both sides, and with nothing else known, each way through the materialization ends
  in an error, and the macros on these ways are the same on both sides.
* *By its text.* The engine cannot parse it, or knows no function of that name; the text is the same, as is all
  that dbt puts around it, no hook runs beside it, and nothing of the project makes functions.

All else may be mended by what changed around the node: it is not in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.comparison import Comparison
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.flow.identifiers import DIALECTS
from dbt_ripple.graph.broken_nodes import inlined_by, runs_its_query
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.macros import INTERNAL, Macros
from dbt_ripple.jinja.hook_runs import HookRunner
from dbt_ripple.reasons import Code, Reason


def syntax_errors(comparison: Comparison) -> dict[str, Reason]:
    """The nodes and tests of head that no engine can parse, and that base had otherwise.

    Returns:
        By unique_id, what is wrong with the text that dbt compiled.
    """
    head = comparison.head
    dialect = DIALECTS.get(head.metadata.adapter_type or "")
    if dialect is None:
        return {}
    wrong = {
        node.unique_id: reason
        for node in edited_texts(comparison)
        if (reason := _syntax_error(comparison, node, dialect)) is not None
    }
    if not wrong:
        return {}
    context = comparison.head_context
    # What Jinja finds in the warehouse may be another text when it is built (rule 11).
    run = {
        unique_id
        for unique_id in wrong
        if runs_its_query(context, node := head.nodes[unique_id])
        and not context.introspection.of(node)
    }
    return {
        unique_id: reason
        for unique_id, reason in wrong.items()
        if unique_id in run
        or (
            head.nodes[unique_id].is_ephemeral
            and not all(map(run.isdisjoint, inlined_by(head, unique_id)))
        )
    }


def edited_texts(comparison: Comparison) -> Iterator[Node]:
    """The nodes of head whose text may be another one than base's, in head's order."""
    base, head = comparison.base.nodes, comparison.head
    edited = comparison.modified | comparison.changed.keys()
    for unique_id, node in head.nodes.items():
        then = base.get(unique_id)
        if (
            node.compiled_code
            and (then is None or unique_id in edited)
            and (then is None or then.compiled_code != node.compiled_code)
            and node.resource_type in ("model", "snapshot", "test")
            and not node.is_python
        ):
            yield node


def _syntax_error(comparison: Comparison, node: Node, dialect: str) -> Reason | None:
    # Here, because most changes have no edit that gets here.
    from dbt_ripple.flow.syntax_errors import syntax_error

    now = comparison.head_analysis
    columns = {
        column.lower()
        for parent in comparison.head.parents.get(node.unique_id, ())
        if (above := now.nodes.get(parent)) is not None
        for column in above.columns
    }
    unread = not_parsed(now, node.unique_id) is not None
    reason = syntax_error(node.compiled_code or "", dialect, unread=unread, columns=columns)
    if reason is None:
        return None
    then = comparison.base.nodes.get(node.unique_id)
    before = then.compiled_code if then is not None else None
    if before and syntax_error(before, dialect, unread=True, columns=columns) is not None:
        return None
    return reason


def not_parsed(analysis: Analysis, unique_id: str) -> Reason | None:
    """Why a node's or a test's query cannot be parsed here; None where it can."""
    analysed = analysis.nodes.get(unique_id) or analysis.tests.get(unique_id)
    if analysed is None or analysed.reason is None or analysed.reason.code is not Code.CANNOT_PARSE:
        return None
    return analysed.reason


_IN_MODEL: Final = re.compile(
    r"^\s*> called by macro (materialization_\w+) .*\n\s*> called by (?:model|snapshot) (\w+) \(",
    re.M,
)
_COMPILATION: Final = "Compilation Error"
_PARSER: Final = re.compile(r"\bParser Error: ")
_NO_FUNCTION: Final = re.compile(
    r"\bCatalog Error: (?:Scalar |Table |Aggregate )?Function with name \"?(\w+)\"? does not exist!"
)
_MAKES: Final = re.compile(
    r"\bcreate\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:function|macro)\b|\b(?:load|install|attach)\s+\w",
    re.I,
)
_OF_ENGINE: Final = frozenset({"duckdb"})
"""Adapters whose engine's words are known to mean what `_PARSER` and `_NO_FUNCTION` say."""


def fail_again(base: Project, head: Project) -> dict[str, str]:
    """The models of head that certainly cannot be built, because base's build says so of the same.

    Returns:
        By unique_id, the message of base's build, in one line.
    """
    if (base.metadata.dbt_version, base.metadata.adapter_type) != (
        head.metadata.dbt_version,
        head.metadata.adapter_type,
    ):
        return {}
    invocation = base.metadata.invocation_id
    errors = {}
    for result in base.run_results:
        unique_id, message = result.unique_id, result.message
        of_another = result.invocation_id and result.invocation_id != invocation
        if result.status != "error" or not message or (invocation and of_another):
            continue
        then, now = base.nodes.get(unique_id), head.nodes.get(unique_id)
        if then is None or now is None or now.resource_type not in ("model", "snapshot"):
            continue
        if message.startswith(_COMPILATION):
            again = _config_is_refused(base, head, then, now, message)
        else:
            again = _text_is_refused(base, head, then, now, message)
        if again:
            errors[unique_id] = _in_short(message)
    return errors


def _in_short(message: str) -> str:
    """The line of an error that says what is wrong."""
    lines = [line.strip() for line in message.splitlines()]
    return next((line for line in lines[1:] if line and not line.startswith(">")), lines[0])


# -- by its text ----------------------------------------------------------------------------------


def _text_is_refused(base: Project, head: Project, then: Node, now: Node, message: str) -> bool:
    if base.metadata.adapter_type not in _OF_ENGINE or not then.compiled_code:
        return False
    if then.materialized not in ("table", "view") or then.config != now.config:
        return False  # the engine may have refused what stands around the text
    if (
        hooks_of(then)
        or hooks_of(now)
        or any(Macros(p).run_by(then.materialized) for p in (base, head))
    ):
        return False
    if rename(then.compiled_code, other_names(base, head)) != now.compiled_code:
        return False
    if _PARSER.search(message):
        return True
    return (
        _NO_FUNCTION.search(message) is not None
        and all(node.resource_type != "function" for node in head.nodes.values())
        and not any(_MAKES.search(text) for text in _texts(head))
    )


def _texts(project: Project) -> Iterator[str]:
    """The source texts of the user's that may be run."""
    for macro in project.macros.values():
        if macro.package_name not in INTERNAL:
            yield macro.macro_sql
    for node in project.nodes.values():
        yield node.raw_code
        for key in ("pre-hook", "post-hook", "sql_header"):
            if value := node.config.get(key):
                yield str(value)


# -- by its config --------------------------------------------------------------------------------


def _config_is_refused(base: Project, head: Project, then: Node, now: Node, message: str) -> bool:
    """Whether the materialization that dbt tells ends in an error by the config alone."""
    called_by = _IN_MODEL.search(message)
    if then.config != now.config or called_by is None or called_by[2] != now.name:
        return False
    ends = _ends_by_config(base, now, called_by[1])
    return ends is not None and ends == _ends_by_config(head, now, called_by[1])


def _ends_by_config(project: Project, node: Node, materialization: str) -> dict[str, str] | None:
    """The macros that are called before a materialization certainly ends in an error; None where it may not."""
    of_kind = f"materialization_{node.materialized}_"
    macros = project.macros
    alike = [macro for macro in macros.values() if macro.name.startswith(of_kind)]
    of_node = [macro for macro in alike if macro.name == materialization]
    if len(of_node) != 1 or any(macro.package_name not in INTERNAL for macro in alike):
        return None
    runner = HookRunner(
        macros.values(),
        project.name,
        project.metadata.adapter_type or "",
        INTERNAL,
        may_run=lambda: macros,
        config=node.config,
    )
    called = runner.certainly_ends(of_node[0], node.package_name)
    return {u: macros[u].macro_sql for u in called} if called is not None else None
