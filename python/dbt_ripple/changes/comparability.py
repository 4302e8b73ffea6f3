"""Whether two manifests can be compared at all, and what besides the code differs between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import CUSTOM_ENVIRONMENT, WITH_SQL
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.changes.dbt_vars import Variables
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints
from dbt_ripple.graph.file_reads import (
    files_of_module,
    files_read,
    module_folders,
    modules_imported,
)
from dbt_ripple.graph.hooks import Hook, not_followed, when_it_runs
from dbt_ripple.graph.introspection import Introspection
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.sources import where_it_is
from dbt_ripple.graph.macros import Macros, dispatched, project_hooks
from dbt_ripple.graph.node_properties import kind_of
from dbt_ripple.jinja.facts import ANY, facts_of
from dbt_ripple.jinja.text import normalised
from dbt_ripple.reasons import Code, Reason


def check(base_context: ProjectContext, head_context: ProjectContext) -> list[Reason]:
    """Notes on what differs besides the code.

    Raises:
        RippleError: base is another project's, or of another kind of warehouse.
    """
    base, head = base_context.project, head_context.project
    before, now = base.metadata, head.metadata
    where = base.target_path
    if before.project_name and now.project_name and before.project_name != now.project_name:
        raise RippleError(
            f"holds the artifacts of project {before.project_name}, not of {now.project_name}",
            where,
            "give the artifacts of this project's deployed state: `dbt docs generate "
            "--target-path DIR` on its commit makes them",
        )
    if before.adapter_type and now.adapter_type and before.adapter_type != now.adapter_type:
        raise RippleError(
            f"was made on {before.adapter_type} and the project's artifacts on {now.adapter_type}, "
            "which compile to different SQL",
            where,
            f"make one of them anew: `dbt docs generate --target TARGET_ON_{now.adapter_type}`",
        )
    notes: list[Reason] = []
    if before.dbt_version != now.dbt_version and before.dbt_version and now.dbt_version:
        notes.append(Code.OTHER_DBT_VERSIONS(base=before.dbt_version, head=now.dbt_version))
    return [
        *notes,
        *_unseen_variables(base, head_context),
        *_unseen_order(base, head_context),
        *_unseen_files(head),
        *_sources_elsewhere(base, head),
    ]


def _unseen_order(base: Project, context: ProjectContext) -> list[Reason]:
    """Whether the order of packages decides which macro of head runs where nothing compiled shows it."""
    head, macros, config_fingerprints = context.project, context.macros, context.config_fingerprints
    if base.macro_order_known and head.macro_order_known:
        return []
    if not macros.in_order:
        return []
    run: set[str] = set()
    for node in head.nodes.values():
        if node.resource_type in WITH_SQL or node.resource_type == "seed":
            run |= macros.run_by(kind_of(node))
            for _, sql in config_fingerprints.own_hooks(node):
                run |= config_fingerprints.run_by_hook(sql, node)
    for hook in head.of_type("operation"):
        run |= config_fingerprints.run_by_hook(hook.raw_code, hook)
    named = {dispatched(macros.macros[u].name) for u in run & macros.in_order}
    return [Code.MACRO_ORDER_UNSEEN(names=sorted(named))] if named else []


def _unseen_files(head: Project) -> list[Reason]:
    """The files beside the project that queries and Python models read, and nothing has compared."""
    files: dict[str, None] = {}
    modules: dict[str, None] = {}
    for node in head.nodes.values():
        files.update(dict.fromkeys(files_read(node, head.metadata.adapter_type)))
        modules.update(dict.fromkeys(modules_imported(node)))
    if modules:
        folders = [Path(head.target_path).absolute().parent, *module_folders()]
        files.update((m, None) for m in modules if any(files_of_module(f, m) for f in folders))
    unseen = sorted(files.keys() - head.files.keys())
    return [Code.FILES_UNSEEN(names=unseen)] if unseen else []


def _sources_elsewhere(base: Project, head: Project) -> list[Reason]:
    """The sources that are elsewhere on each side, and of which the project says the same.

    Before dbt 1.9 a manifest does not tell what the project says: an edit of it is not seen.
    """
    names = [
        now.display_name
        for now in head.of_type("source")
        if (then := base.nodes.get(now.unique_id)) is not None
        and (
            then.schema != now.schema
            or (then.database != now.database and now.unrendered_database is not None)
        )
        and where_it_is(then) == where_it_is(now)
    ]
    return [Code.SOURCES_ELSEWHERE(names=names)] if names else []


def _unseen_variables(base: Project, context: ProjectContext) -> list[Reason]:
    """Where a changed var or environment variable would not be seen: in what is not compiled."""
    head = context.project
    vars_known = base.variables is not None and head.variables is not None
    environment_known = base.same_environment and head.same_environment
    if vars_known and environment_known:
        return []
    with_vars: dict[str, None] = {}
    with_environment: dict[str, None] = {}
    does = {h.owner for h in context.hooks_that_write if h.writes or h.makes or h.anything}
    for node in head.nodes.values():
        if node.resource_type == "operation" and node.unique_id not in does:
            continue
        names, of_environment = context.config_fingerprints.unseen_variables(node)
        if names and not vars_known:
            with_vars[node.display_name] = None
        unknown = {n for n in of_environment if not n.startswith(CUSTOM_ENVIRONMENT)}
        if unknown and not environment_known:
            with_environment[node.display_name] = None
    notes: list[Reason] = []
    if with_vars:
        notes.append(Code.VARS_UNSEEN(names=list(with_vars)))
    if with_environment:
        notes.append(
            Code.ENVIRONMENT_UNSEEN(prefix=CUSTOM_ENVIRONMENT, names=list(with_environment))
        )
    return notes


def with_environment(base: Project, head: Project) -> tuple[Project, Project, bool]:
    """Both sides with the environment variables that are known to differ between them.

    Returns:
        Base, head, and whether something uses one of these that no compiled SQL shows.
    """
    before, now = base.metadata.env, head.metadata.env
    differ = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    if not differ:
        return base.having(environment={}), head.having(environment={}), False
    base, head = (
        side.having(
            environment={CUSTOM_ENVIRONMENT + n: str(values.get(n)) for n in sorted(differ)}
        )
        for side, values in ((base, before), (head, now))
    )
    names = {CUSTOM_ENVIRONMENT + name for name in differ} | {ANY}
    for side in (base, head):
        settings = ConfigFingerprints(side, Macros(side))
        for node in side.nodes.values():
            asked = settings.unseen_variables(node)[1]
            if node.resource_type == "function":
                asked = asked | facts_of(node.raw_code).environment
            if not names.isdisjoint(asked):
                return base, head, True
    return base, head, False


def compiled_blindly(base: Project, head: Project) -> frozenset[str]:
    """The nodes whose edited code was compiled where what it queries may not be there yet.

    That is a node that queries the warehouse while it compiles (rule 11), of which the code or a
    macro differs, and below a relation that has another name on head than base has built it under:
    in the empty schema of CI, a star has no columns. What it is edited to, its SQL need not show.
    """
    names = other_names(base, head)
    unique_ids: set[str] = set()
    sides: list[Introspection] = []
    for unique_id, now in head.nodes.items() if names else ():
        then = base.nodes.get(unique_id)
        if then is None or now.resource_type not in WITH_SQL or now.is_python:
            continue
        above = (base.nodes[p].relation_name for p in then.depends_on.nodes if p in base.nodes)
        if names.keys().isdisjoint(filter(None, above)):
            continue
        sides = sides or [Introspection(side, Macros(side)) for side in (base, head)]
        if any(side.of(node) for side, node in zip(sides, (then, now), strict=True)):
            code = [
                (normalised(node.raw_code), side.macros.fingerprint(node.depends_on.macros))
                for side, node in zip(sides, (then, now), strict=True)
            ]
            if code[0] != code[1]:
                unique_ids.add(unique_id)
    return frozenset(unique_ids)


def with_variables(
    base: Project, head: Project, before: Mapping[str, str], now: Mapping[str, str]
) -> tuple[Project, Project]:
    """Both sides with the vars that differ between them: what uses these has changed (rule 7).

    Args:
        base: what is deployed.
        head: what is proposed.
        before: base's vars by name, values as text; under `ANY`, what all of them depend on.
        now: head's.
    """
    differ = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    return (
        base.having(variables={name: before.get(name, "") for name in differ}),
        head.having(variables={name: now.get(name, "") for name in differ}),
    )


def with_known_variables(base: Project, head: Project) -> tuple[Project, Project] | None:
    """Both sides with the vars that differ, by the files that dbt has left; None where these do not tell."""
    values = Variables(base, head).differing()
    return None if values is None else with_variables(base, head, *values)


def with_session(
    base: Project, head: Project, before: Mapping[str, str], now: Mapping[str, str]
) -> tuple[Project, Project]:
    """Both sides with what their profiles say of the target's session, as far as that is not the same."""
    differ = [key for key in dict.fromkeys((*before, *now)) if before.get(key) != now.get(key)]
    return (
        base.having(session={key: before.get(key, "") for key in differ}),
        head.having(session={key: now.get(key, "") for key in differ}),
    )


def with_macro_order(
    base: Project, head: Project, before: str, now: str
) -> tuple[Project, Project]:
    """Both sides with what their project files say of which package's macro runs."""
    same = before == now
    return (
        base.having(macro_order=None if same else before, macro_order_known=True),
        head.having(macro_order=None if same else now, macro_order_known=True),
    )


def changed_hooks(
    base: Project, head: Project, before: list[Hook], now: list[Hook]
) -> list[Reason]:
    """The hooks that may write to anything and are not the same on both sides, as one reason or none.

    Of ``on-run-*`` hooks the order counts, too.

    Args:
        base: what is deployed.
        head: what is proposed.
        before: base's hooks that do something to other relations than their own.
        now: head's.
    """
    then, here = not_followed(before), not_followed(now)
    if then == here:
        return []
    owners = dict.fromkeys(owner for owner, _ in sorted({*then} ^ {*here}))
    hooks: list[Reason] = []
    for owner in owners or dict.fromkeys(owner for owner, _ in here):
        if owner.startswith("operation."):
            hooks += [
                which
                for unique_id, which in changed_project_hooks(base, head).items()
                if when_it_runs(unique_id) == owner
            ] or [Code.RUN_HOOK_CHANGED(hook=_spoken(owner))]
        else:
            name = (head.nodes.get(owner) or base.nodes[owner]).display_name
            hooks.append(Code.NODE_HOOK_DIFFERS(name=name))
    return [Code.HOOKS_WRITE_ANYWHERE(hooks=[*hooks])]


def followed_hooks(
    base: Project, head: Project, before: list[Hook], now: list[Hook]
) -> list[Reason]:
    """A note on each ``on-run-*`` hook that changed and of which it is known what it does."""
    does: dict[str, set[str]] = {}
    for side, hooks in ((base, before), (head, now)):
        for hook in hooks:
            nodes = side.nodes
            names = {nodes[u].display_name if u in nodes else u for u in hook.writes | hook.makes}
            does.setdefault(hook.owner, set()).update(names)
    reasons: list[Reason] = []
    for unique_id, which in changed_project_hooks(base, head).items():
        effects = sorted(does.get(unique_id, ()))
        reasons.append(
            Code.HOOK_FOLLOWED(because=which, names=effects)
            if effects
            else Code.HOOK_WRITES_NOTHING(because=which)
        )
    return reasons


def changed_project_hooks(base: Project, head: Project) -> dict[str, Reason]:
    """Each ``on-run-*`` hook that is not the same on both sides, with its note.

    A hook that only has another place among the others is the same one (see `changed_hooks`).
    """
    before, now = project_hooks(base), project_hooks(head)
    then, here = (
        {(when_it_runs(unique_id), what) for unique_id, what in side.items()}
        for side in (before, now)
    )
    hooks = {}
    for unique_id in dict.fromkeys([*now, *before]):
        run = when_it_runs(unique_id)
        new = unique_id in now and (run, now[unique_id]) not in then
        gone = unique_id in before and (run, before[unique_id]) not in here
        if new or gone:
            code = (
                Code.RUN_HOOK_CHANGED
                if new and gone
                else Code.RUN_HOOK_NEW
                if new
                else Code.RUN_HOOK_REMOVED
            )
            hooks[unique_id] = code(hook=_spoken(unique_id))
    return hooks


def _spoken(hook: str) -> str:
    return f"{hook.split('.')[-1]} of {hook.split('.')[1]}"
