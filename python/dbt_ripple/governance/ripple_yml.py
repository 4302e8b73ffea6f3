"""What `ripple.yml` says: rules of the gate and their limits (as vars that dbt reads do, too), tiers, hooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import did_you_mean
from dbt_ripple.artifacts.read_yaml import read_yaml
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.rules import LEVELS, RULES, Level
from dbt_ripple.governance.tags import read_required
from dbt_ripple.graph.git import is_tracked

FILE: Final = "ripple.yml"
PROJECT_FILE: Final = "dbt_project.yml"
RULES_VAR: Final = "ripple_rules"
EXCEPTIONS_VAR: Final = "ripple_exceptions"
REQUIRED: Final = "tags_required"
"""The rule that says itself what it asks for."""


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says of one rule, where it says more than a level."""

    level: Level | None = None
    above: int | None = None


class Excepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding that is accepted for a reason; without a column all of the rule on this node."""

    rule: str
    unique_id: str
    reason: str
    column_name: str | None = None


class _Select(msgspec.Struct, forbid_unknown_fields=True):
    critical: str | None = None


class _Hooks(msgspec.Struct, forbid_unknown_fields=True):
    writes: list[str] | None = None


class _RippleYml(msgspec.Struct, forbid_unknown_fields=True):
    select: _Select = msgspec.field(default_factory=_Select)
    hooks: _Hooks = msgspec.field(default_factory=_Hooks)
    rules: dict[str, Any] = {}
    exceptions: list[Excepted] | str = []


class Config(msgspec.Struct, frozen=True):
    """The level of each rule, its threshold, and what is excepted.

    Attributes:
        levels: by rule; a rule that is not named has its own.
        above: thresholds, likewise.
        required: the tags that `tags_required` asks for.
        critical: the criticality whose tests below a change are always selected.
        hook_writes: the relations that hooks write to which cannot be followed; None where none are listed.
    """

    levels: dict[str, Level] = {}
    above: dict[str, int] = {}
    exceptions: tuple[Excepted, ...] = ()
    required: dict[str, list[str]] = {}
    critical: str | None = None
    hook_writes: tuple[str, ...] | None = None

    def level(self, rule: str) -> Level:
        """How severe a finding of the rule is."""
        return self.levels.get(rule, RULES[rule].level)

    def threshold(self, rule: str) -> int:
        """The number a rule begins above."""
        return self.above.get(rule, RULES[rule].above or 0)

    def excepts(self, rule: str, unique_id: str | None, column: str | None) -> bool:
        """Whether such a finding is accepted."""
        return any(
            e.rule == rule
            and e.unique_id == unique_id
            and (not e.column_name or e.column_name.lower() == (column or "").lower())
            for e in self.exceptions
        )


def read_config(project_dir: Path) -> Config:
    """The rules and exceptions of a project.

    They are those of ``ripple.yml`` at its root and of the vars ``ripple_rules`` and
    ``ripple_exceptions`` in its ``dbt_project.yml``, which the dbt package's models judge by. Without
    either every rule has its own level.

    Raises:
        RippleError: one cannot be read, names a rule or a level that does not exist, or they say
            different things of one rule.
    """
    own = project_dir / FILE
    config = _of_file(own, project_dir)
    of_vars = config_of_vars(project_dir)
    if of_vars is None:
        return config
    for name in RULES:
        settings = [
            (c.levels.get(name), c.above.get(name), c.required if name == REQUIRED else None)
            for c in (config, of_vars)
        ]
        if settings[0] != settings[1] and all(any(one) for one in settings):
            raise RippleError(
                f"{FILE} and the var {RULES_VAR} say different things of rule {name}",
                str(own),
                f"say it once; what {PROJECT_FILE} says holds in the warehouse as well",
            )
    levels = config.levels | of_vars.levels
    return Config(
        {name: levels[name] for name in RULES if name in levels},
        config.above | of_vars.above,
        tuple(dict.fromkeys([*config.exceptions, *of_vars.exceptions])),
        {**config.required, **of_vars.required},
        config.critical,
        config.hook_writes,
    )


def hook_writes(project_dir: Path) -> tuple[str, ...] | None:
    """The relations that ``ripple.yml`` lists as those that hooks write to which cannot be followed.

    Returns:
        Their names; None where it lists none.

    Raises:
        RippleError: as `read_config`.
    """
    file = project_dir / FILE
    writes = _content_of(file).hooks.writes if file.is_file() else None
    return None if writes is None else tuple(writes)


def exceptions_files(project_dir: Path) -> list[str]:
    """The file with exceptions that ``ripple.yml`` names, within the project; empty where it names none.

    Raises:
        RippleError: as `read_config`.
    """
    named = _content_of(project_dir / FILE).exceptions
    inside = isinstance(named, str) and (project_dir / named).resolve().is_relative_to(
        project_dir.resolve()
    )
    return [named] if isinstance(named, str) and inside else []


def _content_of(file: Path) -> _RippleYml:
    document = read_yaml(file, inside=file.parent)
    try:
        return msgspec.convert({} if document is None else document, _RippleYml)
    except msgspec.ValidationError as error:
        raise RippleError(
            str(error),
            str(file),
            "see docs/gate.md: it has `rules:`, `exceptions:`, `select:` and `hooks:`",
        ) from None


def _of_file(file: Path, project_dir: Path) -> Config:
    if not file.is_file():
        return Config()
    where = str(file)
    content = _content_of(file)
    exceptions, place = content.exceptions, where
    if isinstance(exceptions, str):
        place = str(project_dir / exceptions)
        exceptions = _exceptions_in(project_dir / exceptions, where, project_dir)
    for name in content.rules:
        _require_rule(name, where)
    config = _config(content.rules, exceptions, where, place)
    writes = content.hooks.writes
    return msgspec.structs.replace(
        config,
        critical=content.select.critical,
        hook_writes=None if writes is None else tuple(writes),
    )


def config_of_vars(project_dir: Path) -> Config | None:
    """What the vars of the dbt package say, as ``dbt_project.yml`` sets them; None without vars.

    Raises:
        RippleError: as `read_config`.
    """
    document, values = _vars(project_dir)
    if values is None:
        return None
    file = project_dir / PROJECT_FILE
    rules, listed = values.get(RULES_VAR) or {}, values.get(EXCEPTIONS_VAR) or []
    where = str(file)
    if not isinstance(rules, dict):
        raise RippleError(f"{RULES_VAR} is no mapping", where, "say a level for each rule")
    for name in rules:
        if name not in RULES and did_you_mean(str(name), RULES, ""):
            _require_rule(str(name), where)
    if isinstance(listed, str):
        place, exceptions = (
            where,
            _exceptions_in(_seed(listed, project_dir, document), where, project_dir),
        )
    else:
        place = where
        try:
            exceptions = msgspec.convert(listed, list[Excepted])
        except msgspec.ValidationError as error:
            raise RippleError(
                f"{EXCEPTIONS_VAR}: {error}", where, "an entry has rule, unique_id and reason"
            ) from None
    # The var may name tests of other packages' rules, too.
    levels = {name: level for name, level in rules.items() if name in RULES}
    return _config(levels, [e for e in exceptions if e.rule in RULES], where, place)


def package_vars(project_dir: Path) -> dict[str, Any]:
    """The vars of ``dbt_project.yml`` as the dbt package sees them: its own before the project's.

    Raises:
        RippleError: the file cannot be read.
    """
    return _vars(project_dir)[1] or {}


def project_file(project_dir: Path) -> dict[str, Any]:
    """What ``dbt_project.yml`` says; empty where there is none.

    Raises:
        RippleError: the file cannot be read.
    """
    return _vars(project_dir)[0]


def _vars(project_dir: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The project file, and the package's vars in it; None without vars."""
    file = project_dir / PROJECT_FILE
    document = read_yaml(file, as_dbt=True) if file.is_file() else None
    if not isinstance(document, dict):
        return {}, None
    variables = document.get("vars")
    if not isinstance(variables, dict):
        return document, None
    package = variables.get("dbt_ripple")
    return document, {**variables, **(package if isinstance(package, dict) else {})}


def _seed(name: str, project_dir: Path, document: dict[str, Any]) -> Path:
    """The file of the seed that holds the exceptions."""
    folders = document.get("seed-paths") or ["seeds"]
    for folder in folders if isinstance(folders, list) else [folders]:
        for file in sorted((project_dir / str(folder)).rglob(f"{name}.csv")):
            return file
    raise RippleError(
        f"{EXCEPTIONS_VAR} is {name!r}, and there is no seed of that name",
        str(project_dir / PROJECT_FILE),
        "name a seed: what a model computes cannot be read before the merge",
    )


def _config(rules: dict[str, Any], exceptions: list[Excepted], where: str, place: str) -> Config:
    levels: dict[str, Level] = {}
    above: dict[str, int] = {}
    required: dict[str, list[str]] = {}
    for name, content in rules.items():
        if name == REQUIRED and isinstance(content, dict):
            required = read_required({k: v for k, v in content.items() if k != "level"}, where)
            content = {"level": content["level"]} if "level" in content else {}
        setting = _setting(name, content, where)
        if setting.level is not None:
            levels[name] = setting.level
        if setting.above is not None:
            if RULES[name].above is None:
                raise RippleError(f"rule {name} has no threshold", where, "take `above` out")
            if setting.above < 0:
                raise RippleError(f"`above` of {name} is negative", where, "say 0 or more")
            above[name] = setting.above
    for exception in exceptions:
        _require_rule(exception.rule, place)
        if not exception.reason.strip():
            raise RippleError(
                f"the exception of {exception.unique_id} from {exception.rule} has no reason",
                place,
                "say why",
            )
    return Config(levels, above, tuple(exceptions), required)


def _exceptions_in(file: Path, where: str, project_dir: Path) -> list[Excepted]:
    """Exceptions in a seed's file, which the dbt models of the rules can read as well."""
    import csv

    if not file.resolve().is_relative_to(project_dir.resolve()):
        raise RippleError(
            "the exceptions are in a file outside of the project",
            where,
            "name a file of the project",
        )
    try:
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RippleError(
            f"the exceptions in {file} cannot be read: {error}", where, "name a CSV file"
        ) from None
    try:
        return [
            msgspec.convert({k: v or "" for k, v in row.items() if k}, Excepted) for row in rows
        ]
    except msgspec.ValidationError:
        # Without its words: they would be those of a file that need not be one of exceptions.
        raise RippleError(
            "is no list of exceptions",
            str(file),
            "its columns are rule, unique_id, column_name, reason",
        ) from None


def _require_rule(name: str, where: str) -> None:
    if name in RULES:
        return
    raise RippleError(
        f"no rule {name!r}",
        where,
        did_you_mean(name, RULES, f"the rules are {', '.join(RULES)}"),
    )


def _setting(name: str, content: Any, where: str) -> Setting:
    if content is False:  # YAML reads a bare `off` so
        content = "off"
    if isinstance(content, dict) and content.get("level") is False:
        content = {**content, "level": "off"}
    level = content.get("level") if isinstance(content, dict) else content
    if level is not None and level not in LEVELS:
        raise RippleError(
            f"{level!r} is no level of {name}",
            where,
            did_you_mean(str(level), LEVELS, f"say {', '.join(LEVELS)}"),
        )
    try:
        return msgspec.convert(
            content if isinstance(content, dict) else {"level": content}, Setting
        )
    except msgspec.ValidationError as error:
        raise RippleError(
            f"of rule {name}: {error}", where, "a rule has a level and, some, `above`"
        ) from None


_FILES: Final = ("packages.yml", "dependencies.yml")
_INSTALLED: Final = "dbt_packages"


def local_packages(project_dir: Path) -> frozenset[str]:
    """The names of the packages that are named by a folder (``local: ...``), or are under version control.

    The project's own repository holds them: what is changed in them is judged, too.

    What a file does not say in plain YAML is left out: dbt refuses it, or renders a path that is not known
    here.
    """
    names: set[str] = set()
    seen: set[Path] = set()
    folders = [project_dir.resolve()]
    while folders:
        folder = folders.pop()
        for package in _packages(folder):
            if package in seen:
                continue
            seen.add(package)
            name = _content(package / PROJECT_FILE).get("name")
            if isinstance(name, str):
                names.add(name)
                folders.append(package)
    return frozenset(names)


def _packages(folder: Path) -> Iterator[Path]:
    for file in _FILES:
        packages = _content(folder / file).get("packages")
        for package in packages if isinstance(packages, list) else []:
            path = package.get("local") if isinstance(package, dict) else None
            if isinstance(path, str):
                yield (folder / path).resolve()
    path = _content(folder / PROJECT_FILE).get("packages-install-path") or _INSTALLED
    if isinstance(path, str):
        for project_file in sorted((folder / path).glob(f"*/{PROJECT_FILE}")):
            if not project_file.parent.is_symlink() and is_tracked(project_file):
                yield project_file.parent.resolve()


def _content(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        content = read_yaml(file, as_dbt=True)
    except RippleError:
        return {}
    return content if isinstance(content, dict) else {}
