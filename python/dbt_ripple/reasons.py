"""Why something is so, as a value: a stable code with arguments, and the one place of its sentence.

Code compares and reads codes and arguments; sentences are for people. `Code` is the table of all
there are: each member is the code, as JSON has it, and the sentence, in which `{name}` stands for an
argument. A reason can be an argument of another one. docs/reasons.md is made from it.

Of lists, what follows the name says how they are written:

* ``{names}``: ``a, b``
* ``{names:and}``: ``a and b``
* ``{parts:;}``: ``a; b``
* ``{names:3}``: the first three, ``and 2 more``
* ``{names:3...}``: the first three, and ``...``
* ``{words:`}``: each in backquotes
* ``{names:quoted}``: as `named` writes the names that a query looks for
* ``{names:cannot find}``: as `not_found` says which names a query looks for in vain
* ``{names:cannot follow}``: as `not_followed` says which names we cannot follow
* ``{names:has|have}``: the first where it is one, else the second
* ``{assets:#asset}``: how many, ``2 assets``
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

Argument: TypeAlias = "str | int | Reason | list[str | Reason]"


class Reason(msgspec.Struct, frozen=True, gc=False):
    """Why something is so.

    Attributes:
        code: which of the reasons it is; stable.
        arguments: the names and numbers in it.
    """

    code: Code
    arguments: dict[str, Argument] = {}

    def __hash__(self) -> int:
        return hash((self.code, self.message))

    @property
    def message(self) -> str:
        """It in words; names in it are as they are, whatever characters they have."""
        values = {name: _InSentence(value) for name, value in self.arguments.items()}
        return self.code.sentence.format(**values)

    def __str__(self) -> str:
        return self.message


class Code(StrEnum):
    """Every reason there is, with its sentence."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Code:
        """A member: its value is the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    def __call__(self, **arguments: str | int | Reason | Sequence[str | Reason]) -> Reason:
        """The reason with these arguments: those that its sentence names, and no others."""
        assert arguments.keys() == self.arguments(), (self, arguments)
        return Reason(
            self,
            {
                name: given if isinstance(given, (str, int, Reason)) else list(given)
                for name, given in arguments.items()
            },
        )

    def arguments(self) -> set[str]:
        """The names of its arguments."""
        from string import Formatter

        return {name for _, name, _, _ in Formatter().parse(self.sentence) if name}

    # -- why a query is not followed ----------------------------------------------------------------
    PYTHON_MODEL = "python_model", "a Python model"
    NOT_COMPILED = (
        "not_compiled",
        "not compiled: run `dbt compile` or `dbt docs generate` on the whole project",
    )
    NO_QUERY = "no_query", "it is not a query"
    NOT_ONE_QUERY = "not_one_query", "{statements} statements where one query was expected"
    NO_QUERY_BUT_A_STATEMENT = "no_query_but_a_statement", "statement {statement} is not a query"
    NESTED_TOO_DEEP = "nested_too_deep", "nested deeper than {levels} levels"
    CANNOT_PARSE = "cannot_parse", "cannot parse: {error}"
    WORDS_DROPPED = "words_dropped", "what {words:`} means there is not known here"
    UNSUPPORTED_SQL = "unsupported_sql", "{construct}"
    DEFECT = "defect", "a defect of dbt_ripple, please report it: {error}"

    # -- why the columns of a query are not known ---------------------------------------------------
    SET_OPERATION_UNKNOWN = (
        "set_operation_unknown",
        "a set operation over columns that are not known",
    )
    PIVOT_UNKNOWN = "pivot_unknown", "PIVOT over values that the query does not list"
    NATURAL_JOIN_UNKNOWN = "natural_join_unknown", "a NATURAL join over columns that are not known"
    USING_AMBIGUOUS = "using_ambiguous", "USING merges two columns {column}"
    STAR_UNKNOWN = (
        "star_unknown",
        "the columns of a * are not known: no catalog lists those of {parents}; run `dbt docs "
        "generate`",
    )

    # -- what else is opaque, or broken -------------------------------------------------------------
    UNKNOWN_MATERIALIZATION = (
        "unknown_materialization",
        "materialization {materialization} is not known",
    )
    CANNOT_FIND = "cannot_find", "{names:cannot find}"
    CANNOT_FOLLOW = "cannot_follow", "{names:cannot follow}"
    MAY_NOT_BUILD = "may_not_build", "may not build: {because}"
    SYNTAX_ERROR = (
        "syntax_error",
        "cannot be parsed: {problem} (line {line} of the compiled SQL)",
    )
    CHECK_THAT_IT_BUILDS = "check_that_it_builds", "{because}; check that it builds"
    NOT_CLOSED = "not_closed", "`{mark}` is not closed"
    NOT_OPENED = "not_opened", "`{mark}` closes nothing"
    COMMA_TOO_MUCH = "comma_too_much", "a comma too many"
    COMMA_LEFT_OUT = "comma_left_out", "a comma is missing before `{word}`"
    NOTHING_AFTER = "nothing_after", "nothing follows `{word}`"
    MISSPELT = "misspelt", "`{word}` for `{keyword}`"
    GONE = "gone", "is gone"
    HOOKS_MAY_WRITE = "hooks_may_write", "hooks of {names:3...} may write to it"
    READS_UNNAMED = (
        "reads_unnamed",
        "may read all of {names:3...}, which its SQL does not name as a relation",
    )
    READS_WHAT_HOOKS_MAKE = "reads_what_hooks_make", "reads what hooks make: {names}"
    READS_CATALOG = "reads_catalog", "reads the warehouse's catalog, which lists every relation"
    SEVERAL = "several", "{reasons:;}"

    # -- the semantic layer -------------------------------------------------------------------------
    CANNOT_BE_READ = "cannot_be_read", "cannot be read: {parts:;}"
    PART_UNREAD = "part_unread", "{part}"
    PART_UNREAD_BECAUSE = "part_unread_because", "{part}: {because}"
    FILTER_UNREAD_BECAUSE = "filter_unread_because", "{part} ({because})"
    NO_EXPRESSION = "no_expression", "it is not an expression"
    NOT_ONE_EXPRESSION = "not_one_expression", "it is not one expression"
    READS_ANOTHER_RELATION = "reads_another_relation", "it reads another relation"
    PART_CANNOT_FIND = (
        "part_cannot_find",
        "cannot find {names:quoted}, which {kind} {name} reads",
    )

    # -- declared assets ----------------------------------------------------------------------------
    READS_WITHOUT_COLUMNS = (
        "reads_without_columns",
        "reads {names} and does not say which columns: it may read all columns and rows",
    )
    WRITES_WITHOUT_COLUMNS = (
        "writes_without_columns",
        "writes {names} and does not say which columns: it may write all columns and rows",
    )
    WRITTEN_WITHOUT_COLUMNS = (
        "written_without_columns",
        "{names} writes it and does not say which columns: any of its columns may come from anything read there",
    )
    KINDS_MISSING = (
        "kinds_missing",
        "its events say which columns come from which, but not what filters and joins the rows: it "
        "may read more of {names}",
    )
    SQL_NOT_FOLLOWED = (
        "sql_not_followed",
        "its SQL cannot be followed ({because}): everything that it names counts as read",
    )
    STATEMENT_NOT_FOLLOWED = "statement_not_followed", "{statement} changes existing rows"
    DIALECT_NOT_KNOWN = (
        "dialect_not_known",
        "the rules of dialect {dialect} are not known here",
    )
    BASE_ASSETS_UNKNOWN = (
        "base_assets_unknown",
        "base has no {file}: its assets are taken to be head's; keep the file beside base's "
        "manifest.json, so that what changed in it counts",
    )
    ASSETS_DECLARED_OTHERWISE = (
        "assets_declared_otherwise",
        "what the declared assets write to {names} changed: "
        "{names:it counts|they count} as changed",
    )

    # -- why a test is selected ---------------------------------------------------------------------
    NEW_TEST = "new_test", "a new test"
    SETTINGS_CHANGED = "settings_changed", "its own {settings:and} changed"
    RUN_OTHERWISE = (
        "run_otherwise",
        "code that dbt runs for it, and that its SQL does not show, changed",
    )
    TARGET_SET_OTHERWISE = "target_set_otherwise", "{settings:3} of the target changed"
    OWN_QUERY_CHANGED = "own_query_changed", "its own query changed"
    NODE_NEW = "node_new", "{name} is new"
    ROWS_CHANGED = "rows_changed", "rows of {name} changed"
    COLUMN_NEW = "column_new", "{name}.{column} is new"
    COLUMN_CHANGED = "column_changed", "{name}.{column} changed"
    COLUMNS_GONE = "columns_gone", "{name} no longer has {columns:3...}"
    CRITICAL = "critical", "{name} is impacted and {criticality}"
    CRITICAL_BELOW = "critical_below", "{name} is below the change and {criticality}"
    TEXT_CHANGED = (
        "text_changed",
        "its query was rewritten with the same meaning: running it shows whether it compiles",
    )
    NAMES_CHANGED_COLUMN = (
        "names_changed_column",
        "it names {name}.{column}, which changed, without using it",
    )
    EVALUATED_OTHERWISE = (
        "evaluated_otherwise",
        "a value of {name} may fail when it is read, such as a cast, and the edit may have it evaluated for other rows "
        "(conditions, joins or ORDER BY in other words, or another materialization): running the test shows it",
    )
    ONLY_TESTS_INLINE = (
        "only_tests_inline",
        "{name} changed, and only tests inline it: running one shows whether it compiles",
    )
    DBT_MODIFIED = "dbt_modified", "dbt calls it modified"
    BELOW_DBT_MODIFIED = "below_dbt_modified", "downstream of {name}, which dbt calls modified"

    # -- what cannot be built -----------------------------------------------------------------------
    BROKEN = "broken", "broken: {because}"
    NO_REASON_GIVEN = "no_reason_given", "no reason given"
    BROKEN_BY = "broken_by", "{because}: {gone:;}"
    COLUMN_GONE = "column_gone", "{name}.{column} is gone"
    COLUMN_RENAMED = "column_renamed", "{name}.{column} is gone (renamed to {to})"
    CANNOT_BE_BUILT = "cannot_be_built", "{name} cannot be built: {because}"
    FAILED_ON_BASE = (
        "failed_on_base",
        "failed on base, and everything that decides it is unchanged ({error})",
    )
    READS_FAILED = (
        "reads_failed",
        "it reads {name}, directly or not, which failed on base, and everything that decides it "
        "is unchanged ({error})",
    )
    THERE_IS_NO = "there_is_no", "there is no {names:quoted}"
    ON_SIDE = "on_side", "on {side}: {because}"

    # -- why a test is proven -------------------------------------------------------------------------
    PROVEN = "proven", "{because:;}"
    FACT = "fact", "{fact}"
    FACT_RUNS = "fact_runs", "{fact}, which {tests:runs|run}"
    FACT_PASSED = "fact_passed", "{fact}, which passed on base"
    ROWS_WERE_THERE = (
        "rows_were_there",
        "it reads only rows that were there on base, where it passed",
    )
    SAME_ROWS = "same_rows", "it returns the rows it returned on base"
    TEST_SHOWS = "test_shows", "{name}, which runs, shows whether {views} can be read"
    TABLE_SHOWS = "table_shows", "{name}, which is built, shows whether {views} can be read"

    # -- what is missing to prove a test -------------------------------------------------------------
    NO_RESULTS = "no_results", "base has no results of tests that belong to its manifest"
    NOT_ON_BASE = "not_on_base", "base has no such test"
    NOT_FOLLOWED = "not_followed", "its query cannot be followed on {side}: {because}"
    HOOK_CHANGED = "hook_changed", "a hook of {name} changed, and may write any row"
    ROWS_UNKNOWN = "rows_unknown", "it is not known which rows its query returns"
    ROWS_UNKNOWN_BECAUSE = (
        "rows_unknown_because",
        "it is not known which rows its query returns: {because}",
    )
    MACRO_REPLACED = (
        "macro_replaced",
        "a macro of the project replaces one that dbt runs for it",
    )
    QUERIES_OR_READS_UNNAMED = (
        "queries_or_reads_unnamed",
        "it queries the warehouse while it compiles, or reads relations that it does not name",
    )
    SHOWS_A_VIEW = (
        "shows_a_view",
        "it has to run: it shows whether a changed view can be read",
    )
    ROWS_NOT_AMONG_BASE = (
        "rows_not_among_base",
        "it may read rows that base does not have, or what it checks in each row changed",
    )
    MAY_PASS_WITH_ROWS = (
        "may_pass_with_rows",
        "it may pass while it returns rows: warn_if, error_if, limit or fail_calc",
    )
    RETURNED_ROWS = "returned_rows", "on base it returned {rows} rows, and passed"
    FACTS_MAY_NOT_HOLD = (
        "facts_may_not_hold",
        "the facts that a proof would need are not known to hold on head",
    )
    NOT_RUN_ON_BASE = "not_run_on_base", "it was not run on base"
    RESULTS_NOT_READ = (
        "results_not_read",
        "it may pass while it returns rows, and base's results are not read",
    )
    RESULT_OF_ANOTHER_COMMAND = (
        "result_of_another_command",
        "its result on base is of another dbt command than the manifest",
    )
    RESULT_ON_BASE = "result_on_base", "on base its result was {status}"
    NOT_ANALYSED = "not_analysed", "{name} cannot be analysed: {because}"
    HOOKS_READ = (
        "hooks_read",
        "hooks of {name} read other relations or the project, and may write any row",
    )
    QUERIES_WAREHOUSE = (
        "queries_warehouse",
        "{name} queries the warehouse while it compiles, and what it queries changed or may not "
        "have existed",
    )

    # -- why a test is not selected; unit tests -----------------------------------------------------
    NOTHING_CHANGED = "nothing_changed", "nothing changed"
    MEANS_THE_SAME = "means_the_same", "{name} means the same in other words: {rules}"
    NOT_DOWNSTREAM = (
        "not_downstream",
        "it is not downstream of what changed ({names:3...})",
    )
    EQUAL_AGAIN = (
        "equal_again",
        "{reader} reads {changed}, which changed, but its own fingerprint is equal",
    )
    READS_ONLY = (
        "reads_only",
        "of {name}, {changed} changed; it reads only {read:5...} and which rows there are",
    )
    DOES_NOT_READ = "does_not_read", "of {name}, {changed} changed, which it does not read"
    OTHERS_CHANGED = "others_changed", "of {name}, only {changed} changed"
    ONLY_REORDERED = "only_reordered", "of {name}, only the order of its columns changed"
    UNIT_TEST_AS_BEFORE = (
        "unit_test_as_before",
        "its model's own query, its settings, the fixture and the names and types of its inputs' "
        "columns are unchanged",
    )
    NEW_UNIT_TEST = "new_unit_test", "a new unit test"
    FIXTURE_CHANGED = "fixture_changed", "its fixture changed"
    TESTED_QUERY_CHANGED = (
        "tested_query_changed",
        "the query or the settings of {model} changed, or the columns of its inputs",
    )
    GIVEN_TYPE_CHANGED = "given_type_changed", "{name}.{column} was {was} and is {now}"
    GIVEN_TYPE_MAY_CHANGE = (
        "given_type_may_change",
        "{name}.{column}, by whose type dbt types the fixture, may have another type",
    )
    NOT_ANALYSED_ON_BOTH = (
        "not_analysed_on_both",
        "{model} was not analysed on both sides",
    )
    EQUAL_TO_BASE = "equal_to_base", "what it reads is equal to base's: {names}"

    # -- what the answer had to assume --------------------------------------------------------------
    EVERY_TEST_SELECTED = "every_test_selected", "{because}: every test is selected"
    HOOK_NOT_FOLLOWED = "hook_not_followed", "{because}: what they do to relations is not known"
    HOOKS_WRITE_ANYWHERE = (
        "hooks_write_anywhere",
        "to which relations these hooks write cannot be told, and they are not the same on both sides "
        "({hooks:3}; if you know, list them in ripple.yml: `hooks: {{writes: [relation]}}`)",
    )
    NODE_HOOK_DIFFERS = "node_hook_differs", "a hook of {name}"
    RUN_HOOK_CHANGED = "run_hook_changed", "{hook} changed"
    RUN_HOOK_NEW = "run_hook_new", "{hook} is new"
    RUN_HOOK_REMOVED = "run_hook_removed", "{hook} was removed"
    HOOK_FOLLOWED = (
        "hook_followed",
        "{because}: the tests of what it writes or creates ({names:3...}) are selected",
    )
    HOOK_WRITES_NOTHING = (
        "hook_writes_nothing",
        "{because}: it writes to no relation, so it selects no test; the next build shows whether "
        "it runs",
    )
    OTHER_DBT_VERSIONS = (
        "other_dbt_versions",
        "base was made by dbt {base}, head by dbt {head}: differences between dbt's own macros "
        "are not compared",
    )
    VARS_UNSEEN = (
        "vars_unseen",
        "dbt writes no vars into its artifacts: hooks and branches that are not compiled "
        "({names:3...}) are compared as if all vars were equal on both sides; `--base-ref` "
        "compares the vars, too",
    )
    ENVIRONMENT_UNSEEN = (
        "environment_unseen",
        "dbt writes only environment variables that begin with {prefix} into its artifacts: "
        "hooks, Python and code that is not compiled ({names:3...}) are compared as if all others "
        "were equal on both sides",
    )
    SOURCES_ELSEWHERE = (
        "sources_elsewhere",
        "sources are in another schema or database on each side ({names:3...}), as far as is known "
        "by target or environment alone: they are taken as equal",
    )
    MACRO_ORDER_UNSEEN = (
        "macro_order_unseen",
        "which package's version of a macro runs ({names:3...}) is up to `dispatch` and the flags in "
        "dbt_project.yml, which dbt writes into no artifact: they are taken as equal on both sides; "
        "`--base-ref` compares them, too",
    )
    FILES_UNSEEN = (
        "files_unseen",
        "what files hold that queries and Python models read is not compared ({names:3...}): they "
        "are taken as equal on both sides",
    )
    SEED_TOO_LARGE = (
        "seed_too_large",
        "seed {name} is too large for dbt to compute a checksum: {because}",
    )
    SEED_FILES_DIFFER = "seed_files_differ", "its files differ"
    SEED_FILES_EQUAL = "seed_files_equal", "its files are equal"
    SEED_FILE_MISSING = (
        "seed_file_missing",
        "its file is not here, so it counts as changed",
    )
    SEED_FILE_NEWER = (
        "seed_file_newer",
        "its file is newer than base's artifacts, or they were made on another machine, and git (with its whole "
        "history) does not show that it was never edited, so it counts as changed; `--base-ref` compares the files",
    )
    SEED_FILE_OLDER = (
        "seed_file_older",
        "its file is older than base's artifacts, so it counts as unchanged",
    )
    SEED_FILE_NEVER_EDITED = (
        "seed_file_never_edited",
        "git knows no other version of its file, so it counts as unchanged",
    )
    SEED_FILE_OF_BASE_MISSING = (
        "seed_file_of_base_missing",
        "base's file is not here, and git (with its whole history) does not show that it was never edited, "
        "so it counts as changed; `--base-ref` compares the files",
    )
    SEES_ORDER = (
        "sees_order",
        "rows that {names:3} read may come in another order than on base, and no ORDER BY decides what is made of that: "
        "they count as changed",
    )
    TAKEN_FROM_BASE = (
        "taken_from_base",
        "{names:3} have other compiled SQL on head than on base, although everything that decides "
        "it is equal: base's SQL is used for both",
    )
    TAKEN_FROM_HEAD = (
        "taken_from_head",
        "{names:3} have no compiled SQL on base, or another target's, and everything else that decides "
        "it is equal: head's SQL is used for both",
    )
    MACROS_GIVE_THE_SAME = (
        "macros_give_the_same",
        "edited, with the same result over these nodes: {names}",
    )
    REWORDED = "reworded", "the same in other words: {nodes:;}"
    REWORDED_AND_MORE = "reworded_and_more", "the same in other words: {nodes:;}; and {more} more"
    REWORDED_NODE = "reworded_node", "{name} ({rules})"
    DIFFERS_BY_TARGET = (
        "differs_by_target",
        "{names:3} {names:has|have} other compiled SQL than on base though the code is the same: "
        "vars, environment variables or existing relations differ; `--base-ref` compiles both sides alike",
    )
    RESULTS_STALE = (
        "results_stale",
        "run_results.json in the state is of another dbt command than manifest.json, so its "
        "results prove nothing and no test is left out: keep both files as one `dbt build` writes "
        "them, or take all of base's tests as passed with --assume-passed",
    )
    NOTHING_TESTED = (
        "nothing_tested",
        "base has no results of tests, so no test is proven and left out (--assume-passed takes "
        "all of base's tests as passed)",
    )
    TYPES_UNKNOWN = (
        "types_unknown",
        "base has no catalog.json: the types of columns are not known, so fewer tests are proven "
        "(`dbt docs generate --no-compile --target-path docs` writes one; keep it with the state)",
    )
    NO_CATALOG = (
        "no_catalog",
        "{sides:and} {sides:has|have} no catalog.json: types and sources are compared only as far "
        "as yml files declare them",
    )

    # -- why base's compiled SQL is not taken for head's --------------------------------------------
    NOT_COMPILED_ON_BASE = "not_compiled_on_base", "base has not compiled it"
    NOT_ON_BASE_SIDE = "not_on_base_side", "base does not have it"
    PART_OF_A_CYCLE = "part_of_a_cycle", "it is part of a cycle"
    CODE_CHANGED = "code_changed", "its code changed"
    CONFIG_CHANGED = "config_changed", "its config changed"
    ARGUMENTS_CHANGED = "arguments_changed", "its arguments changed"
    REFERENCES_CHANGED = "references_changed", "what it refers to changed"
    MACROS_DISPATCHED_OTHERWISE = (
        "macros_dispatched_otherwise",
        "`adapter.dispatch` takes other macros for it",
    )
    PARENT_ON_ONE_SIDE = "parent_on_one_side", "one side does not have {parent}"
    EPHEMERAL_ON_ONE_SIDE = "ephemeral_on_one_side", "{name} is ephemeral on one side only"
    INLINES = "inlines", "{name} is part of it: {because}"
    MACRO_ON_ONE_SIDE = "macro_on_one_side", "macro {name} is not on both sides"
    MACRO_CHANGED = "macro_changed", "macro {name} changed"
    LOOKS_WHILE_COMPILING = (
        "looks_while_compiling",
        "it queries the warehouse while it compiles (`{word}`)",
    )
    ASKS_DBT = "asks_dbt", "it asks dbt for `{word}` while it compiles"
    READS_UNKNOWN_VALUE = (
        "reads_unknown_value",
        "it reads `{word}`, whose value is not in the artifacts",
    )
    READS_OWN_PROPERTIES = (
        "reads_own_properties",
        "it reads its own properties, which changed",
    )
    LOOKS_AT_UNKNOWN = (
        "looks_at_unknown",
        "it queries the warehouse while it compiles, and it is not known what",
    )
    USES_PART_OF_NAME = (
        "uses_part_of_name",
        "it may use a part of a relation's name (`{part}`)",
    )
    NAME_IN_CODE = "name_in_code", "{name} is written into its code"
    NAME_OF_TWO = "name_of_two", "{name} names two relations on {side}"
    COMPILED_BY_ANOTHER = (
        "compiled_by_another",
        "another {what} compiled base: {base}, not {head}",
    )

    # -- what the gate finds ------------------------------------------------------------------------
    ALREADY_ON_BASE = "already_on_base", "{because} (already so on base)"
    APPROVED_BY = "approved_by", "{because}; approved by {who}"
    REMOVED_IN_GRACE = (
        "removed_in_grace",
        "{name} is deprecated, and its readers have until {date}",
    )
    OF_COLUMN = "of_column", "{column}: {because}"
    PII_TAG_REMOVED = (
        "pii_tag_removed",
        "it is tagged as {pii} on base and not any more; for this change it still counts as {pii}",
    )
    PII_DECLASSIFIED = "pii_declassified", "it is newly declassified ({reason})"
    MACRO_OF_OTHER_CONTEXTS = "macro_of_other_contexts", "macro {name}: {because}"
    DECIDED_BY_CONTEXT = (
        "decided_by_context",
        "what it compiles to depends on {names:and}; only what it compiles to here is judged",
    )
    READS_BY_TEXT = (
        "reads_by_text",
        "reads relations that a text names ({functions:and}); what it reads of them is not known",
    )
    HOOK_ACTS = "hook_acts", "has a new hook that may take data to where no model is"
    JINJA_ACTS = (
        "jinja_acts",
        "its Jinja newly runs statements that do more than read, or of which the text is not known",
    )
    READS_UNDECLARED = (
        "reads_undeclared",
        "newly reads {names:and} by name; no source and no model is declared there, so nothing is known of it",
    )
    REPLACES_DBT = (
        "replaces_dbt",
        "macro {name} takes the place of one of dbt's, and decides how relations are built; what it does is not known",
    )
    CALLED_LIKE_A_MASK = (
        "called_like_a_mask",
        "this function has the name of one that hides its arguments; what it does is not known",
    )
    NAMES_RELATIONS = (
        "names_relations",
        "macro {name} names relations, and is another one; where they are for other targets is not known",
    )
    MAY_PASS_ON = (
        "may_pass_on",
        "cannot be analysed, and may pass on {name}.{column}, which is {pii}: {because}",
    )
    READS_LESS = (
        "reads_less",
        "it says that it reads less than on base; whether it does is not known here",
    )
    DISABLED_HERE = "disabled_here", "it is new and disabled here, so that it is not judged"
    POLICY_LEVEL = "policy_level", "rule {rule} goes from {was} to {now}"
    POLICY_ABOVE = "policy_above", "rule {rule} begins above {now}, not above {was}"
    POLICY_REQUIRED = "policy_required", "tags_required asks for {now}, not for {was}"
    POLICY_EXCEPTED = (
        "policy_excepted",
        "a new exception from {rule} for {unique_id} ({reason})",
    )
    POLICY_NOT_EXCEPTED = (
        "policy_not_excepted",
        "an exception from {rule} for {unique_id} goes",
    )
    POLICY_MASKING = "policy_masking", "{names:and} {names:counts|count} as masking now"
    POLICY_MASKING_MACRO = "policy_masking_macro", "the macro {name}, which masks, is another one"
    POLICY_HOOKS = "policy_hooks", "what hooks write to is said otherwise (hooks: writes)"
    POLICY_FIRST = (
        "policy_first",
        "base has no rules of its own yet, so that those of this change judge it",
    )
    POLICY_OF_HEAD = (
        "policy_of_head",
        "the rules of this change judge it, because those of base are not known: keep ripple.yml and "
        "dbt_project.yml beside base's manifest.json",
    )
    POLICY_UNREAD = (
        "policy_unread",
        "the rules of this change judge it, because those of base cannot be read ({why})",
    )
    CONTRACT_ENDED = "contract_ended", "its contract was enforced, and is not any more"
    ACCESS_LOWERED = "access_lowered", "its access was {was}, and is {now}"
    ENDS_EARLIER = "ends_earlier", "it was to end on {was}, and ends on {now}"
    NEWLY_DEPRECATED = "newly_deprecated", "{name} is deprecated from {date} on"
    OWNER_REMOVED = "owner_removed", "it had the owner {owner}, and has none now"
    NEW_WITHOUT_OWNER = "new_without_owner", "it is new and has no owner"
    COMPUTED_TWICE = "computed_twice", "computes the same as {name}.{column}"
    BYPASSES_SAME = (
        "bypasses_same",
        "reads {name}.{column}, which is {canonical}.{there} computed once more; {canonical} is canonical",
    )
    BYPASSES_OTHER = (
        "bypasses_other",
        "reads {name}.{column}, and the canonical {canonical}.{there} is computed in another way",
    )
    COMES_NOT_FROM = "comes_not_from", "does not come from {name}"
    COMES_FROM = "comes_from", "comes from {name}.{column}: {path}"
    COMES_ALSO_FROM = "comes_also_from", "comes from {name}.{column}, too: {path}"
    COMES_FROM_ROWS = "comes_from_rows", "comes from the number of rows of {name}: {path}"
    COMES_FROM_PII = "comes_from_pii", "comes from {name}.{column}, which is {pii}: {path}"
    IS_PII = "is_pii", "is declared to be {pii}"
    LINEAGE_UNREAD = (
        "lineage_unread",
        "whether it comes from {what} is not known, because {name} cannot be analysed: {because}",
    )
    LINEAGE_ASKS_NOTHING = "lineage_asks_nothing", "it asks for nothing: give `columns` or `pii`"
    LINEAGE_CHANGED = "lineage_changed", "{name}.{column} may come from something else"
    LINEAGE_AS_BEFORE = (
        "lineage_as_before",
        "it asks what {name}.{column} comes from, and that is unchanged",
    )
    NO_SUCH_NAME = "no_such_name", "{name}: {hint}"
    WITHOUT_OWNER = "without_owner", "it has no owner"
    TAG_MISSING = "tag_missing", "it has no {tag}, which {of} needs"
    KEY_UNTESTED = "key_untested", "no data tests check that a key is unique and not null"
    SHOWS_PII = "shows_pii", "exposes {pii}"
    SHOWS_PII_OF = "shows_pii_of", "exposes {pii} of {name}.{column}"
    UNTAGGED_PII = "untagged_pii", "is not tagged, but has {pii}"
    UNTAGGED_PII_OF = "untagged_pii_of", "is not tagged, but has {pii} of {name}.{column}"
    READS_GONE_NODE = "reads_gone_node", "reads {name}, which is gone"
    READS_GONE_COLUMN = "reads_gone_column", "reads {name}.{column}, which is gone"
    NOT_IN_WAREHOUSE = "not_in_warehouse", "is not in the warehouse any more"
    SOURCE_RETYPED = "source_retyped", "was {was} and is {now}"
    DECLARED_BUT_ABSENT = "declared_but_absent", "is declared, and not in the warehouse"
    DECLARED_OTHERWISE = "declared_otherwise", "is declared {declared} and is {now}"
    RELATION_REMOVED = "relation_removed", "{name} itself is removed"
    RELATION_MOVED = "relation_moved", "the relation moved from {was} to {now}"
    RELATION_NOT_BUILT = "relation_not_built", "{name} is ephemeral now: the relation is gone"
    REMOVED_BY_OTHER = "removed_by_other", "{name} stands in its place, and does not have it"
    OTHER_STANDS_THERE = (
        "other_stands_there",
        "{name} stands in its place, and its rows or values may differ",
    )
    REMOVED_FROM_SOURCE = "removed_from_source", "removed from the source"
    REMOVED = "removed", "removed"
    RENAMED = "renamed", "renamed to {to}"
    RETYPED = "retyped", "retyped from {was} to {now}"
    RETYPED_TO = "retyped_to", "retyped to {to}"
    MAY_BE_REDEFINED = (
        "may_be_redefined",
        "changed, and cannot be analysed: any of its columns may be redefined",
    )
    SUSPECT_CHANGED = "suspect_changed", "changed there: {columns:3}"
    SUSPECT_PROMISE = "suspect_promise", "it does not keep what it promised: {promises:;}"
    SUSPECT_GONE = "suspect_gone", "it was removed, and the number came from it"
    SUSPECT_TEST = "suspect_test", "the test itself changed"
    SUSPECT_FAILED = "suspect_failed", "it failed in the last command ({status})"
    SUSPECT_TESTS_FAILED = "suspect_tests_failed", "its tests failed: {tests:3}"
    SUSPECT_STALE = "suspect_stale", "not fresh ({status}): newest row {newest}"
    IN_USE_WHEN_IT_PASSED = (
        "in_use_when_it_passed",
        "in use since {at}, and it passed after that ({passed})",
    )
    IN_USE_AFTER_FAILURE = (
        "in_use_after_failure",
        "in use since {at}, when it had failed already ({failed})",
    )
    MESSAGES_WITHHELD = (
        "messages_withheld",
        "dbt's messages stay out: {names:3} {names:holds|hold} personal data, which a message may quote",
    )
    NO_OLDER_ARTIFACTS = (
        "no_older_artifacts",
        "no older artifacts: what was changed is not known (--state DIR, --tables)",
    )
    NO_LINEAGE_TABLES = (
        "no_lineage_tables",
        "the lineage tables were not read: what ran before the last command is not known, nor when a "
        "change came into use (--tables)",
    )
    NO_LAST_RESULTS = (
        "no_last_results",
        "no run_results.json of a run or test: how the last one ended is not known",
    )
    NO_FRESHNESS = (
        "no_freshness",
        "no sources.json: how fresh the sources are is not known (`dbt source freshness`)",
    )
    STATE_IS_NEWER = (
        "state_is_newer",
        "the artifacts of --state are of {at}, when it had failed already: what changed before is not in the "
        "answer",
    )
    NOT_FOLLOWED_ON_THE_WAY = (
        "not_followed_on_the_way",
        "{names:3} cannot be analysed: everything that {names:it reads|they read} counts",
    )
    REDEFINED = "redefined", "redefined"
    REDEFINED_BY = "redefined_by", "redefined by {where}"
    ROWS_REDEFINED = "rows_redefined", "its rows are redefined"
    ROWS_REDEFINED_BY = "rows_redefined_by", "its rows are redefined by {where}"
    CONTRACT_VERSION_REMOVED = (
        "contract_version_removed",
        "contract_version {version} was removed",
    )
    CONTRACT_VERSION_UNEXPLAINED = (
        "contract_version_unexplained",
        "contract_version went from {was} to {now} without a new text in meta.migration",
    )
    FIRST_CONTRACT_VERSION_UNEXPLAINED = (
        "first_contract_version_unexplained",
        "its first contract_version is {version}, without a text in meta.migration for what changes with it: "
        "{broken:;}",
    )
    NEW_VERSION_UNEXPLAINED = (
        "new_version_unexplained",
        "{name} is the latest version now, but {names:and} has no deprecation_date and this one "
        "no meta.migration",
    )
    OFFERED_NO_MORE = "offered_no_more", "the {kind} is removed"
    OFFERED_RENAMED = "offered_renamed", "the {kind} is renamed to {to}"
    REACHES = "reaches", "reaches {assets:#asset} ({assets:10})"
    REACHES_MORE_THAN = (
        "reaches_more_than",
        "reaches {assets:#asset}, more than {most} ({assets:10})",
    )
    CERTIFIED_REACHED = "certified_reached", "certified or tier 1, is reached"
    CERTIFIED_REMOVED = "certified_removed", "certified or tier 1, is removed"
    CERTIFIED_CHANGED = "certified_changed", "certified or tier 1, is changed"


def several(reasons: list[Reason]) -> Reason:
    """Several reasons, or the only one, as one."""
    return reasons[0] if len(reasons) == 1 else Code.SEVERAL(reasons=reasons)


def names_missing(reason: Reason | None) -> list[str]:
    """The names that something cannot find, by the reason why it is broken."""
    if reason is None:
        return []
    if reason.code in (Code.CANNOT_FIND, Code.CANNOT_FOLLOW, Code.PART_CANNOT_FIND):
        names = reason.arguments["names"]
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [name for part in parts_of(reason) for name in names_missing(part)]


COLUMNS_UNKNOWN: Final = frozenset(
    {Code.STAR_UNKNOWN, Code.SET_OPERATION_UNKNOWN, Code.NATURAL_JOIN_UNKNOWN}
)
"""The columns of a relation are not known; a catalog would tell them."""


def parts_of(reason: Reason) -> Iterator[Reason]:
    """The reasons that a reason is made of."""
    for argument in reason.arguments.values():
        if isinstance(argument, Reason):
            yield argument
        elif isinstance(argument, list):
            yield from (part for part in argument if isinstance(part, Reason))


_READS_AS_ONE: Final = re.compile(r"[\w$@:#.`\"-]+(?: [\w$]+)*")


def named(names: Iterable[str]) -> str:
    """Names in a sentence: each once, in quotes where it would not be read as one.

    Example:
        >>> named(["sprint", ", ", "t.id", "Sprint", "id is ambiguous", ""])
        'sprint, ", ", t.id, id is ambiguous, ""'
    """
    shown: dict[str, str] = {}
    for name in names:
        shown.setdefault(name.lower(), name if _READS_AS_ONE.fullmatch(name) else f'"{name}"')
    return ", ".join(shown.values())


_IS_A_SENTENCE: Final = re.compile(r".+ is ambiguous|[A-Z ]+ of \d+ columns with \d+", re.DOTALL)


def not_found(names: Sequence[str]) -> str:
    """What a query looks for in vain, and what else is wrong with its names.

    Example:
        >>> not_found(["t.id", "a is ambiguous", "b", "UNION of 2 columns with 1"])
        'cannot find t.id, b; a is ambiguous; UNION of 2 columns with 1'
    """
    said = [name for name in names if _IS_A_SENTENCE.fullmatch(name)]
    sought = named(name for name in names if name not in said)
    return "; ".join([f"cannot find {sought}"] * (len(said) < len(names)) + said)


def not_followed(names: Sequence[str]) -> str:
    """The names that a query has and that we cannot follow, the first five, and what else does not fit.

    Example:
        >>> not_followed(["t.id", "a is ambiguous", "T.id", "UNION of 2 columns with 1"])
        'cannot follow `t.id`, `a` (ambiguous); UNION of 2 columns with 1'
        >>> not_followed([*"abcdefg"])
        'cannot follow `a`, `b`, `c`, `d`, `e` and 2 more'
    """
    said = [name for name in names if _IS_A_SENTENCE.fullmatch(name) and name[-9:] != "ambiguous"]
    shown: dict[str, str] = {}
    for name in (name for name in names if name not in said):
        plain = name.removesuffix(" is ambiguous")
        shown.setdefault(name.lower(), f"`{plain}`" + " (ambiguous)" * (plain != name))
    followed = [f"cannot follow {_listed([*shown.values()], '5')}"] if shown else []
    return "; ".join([*followed, *dict.fromkeys(said)])


class _InSentence:
    """Writes an argument of a reason into its sentence."""

    def __init__(self, value: Argument) -> None:
        self.value = value

    def __format__(self, format_spec: str) -> str:
        value = self.value
        if isinstance(value, Reason):
            return value.message
        if not isinstance(value, list):
            return f"{value:,}" if isinstance(value, int) else value
        items = [item.message if isinstance(item, Reason) else item for item in value]
        return _listed(items, format_spec)


def _listed(items: Sequence[str], how: str) -> str:
    if how == "quoted":
        return named(items)
    if how == "cannot find":
        return not_found(items)
    if how == "cannot follow":
        return not_followed(items)
    if how == "`":
        return ", ".join(f"`{item}`" for item in items)
    if how.startswith("#"):
        return f"{len(items):,} {how[1:]}{'' if len(items) == 1 else 's'}"
    if "|" in how:
        one, many = how.split("|")
        return one if len(items) == 1 else many
    if how in _BETWEEN:
        return _BETWEEN[how].join(items)
    most = int(how.rstrip("."))
    left = len(items) - most
    rest = "" if left <= 0 else ", ..." if how.endswith("...") else f" and {left:,} more"
    return ", ".join(items[:most]) + rest


_BETWEEN: Final = {"": ", ", "and": " and ", ";": "; "}
