"""`ripple.yml`: which rules of the gate warn or block, and their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import did_you_mean
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.rules import LEVELS, RULES, Level

FILE: Final = "ripple.yml"


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


class _File(msgspec.Struct, forbid_unknown_fields=True):
    rules: dict[str, Any] = {}
    exceptions: list[Excepted] | str = []


class Config(msgspec.Struct, frozen=True):
    """The level of each rule, its threshold, and what is excepted.

    Attributes:
        levels: by rule; a rule that is not named has its own.
        above: thresholds, likewise.
    """

    levels: dict[str, Level] = {}
    above: dict[str, int] = {}
    exceptions: tuple[Excepted, ...] = ()

    def level(self, rule: str) -> Level:
        """How grave a finding of the rule is."""
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
    """Read ``ripple.yml`` at the project's root; every rule has its own level without one.

    Raises:
        RippleError: it cannot be read, or names a rule or a level that does not exist.
    """
    file = project_dir / FILE
    if not file.is_file():
        return Config()
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    where = str(file)
    try:
        document = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        said = " ".join(str(error).split())
        raise RippleError(f"cannot be read: {said}", where, "correct it as YAML") from None
    try:
        said_of = msgspec.convert({} if document is None else document, _File)
    except msgspec.ValidationError as error:
        raise RippleError(
            str(error), where, "see docs/gate.md: it has `rules:` and `exceptions:`"
        ) from None
    levels: dict[str, Level] = {}
    above: dict[str, int] = {}
    for name, said in said_of.rules.items():
        _known_rule(name, where)
        setting = _setting(name, said, where)
        if setting.level is not None:
            levels[name] = setting.level
        if setting.above is not None:
            if RULES[name].above is None:
                raise RippleError(f"rule {name} has no threshold", where, "take `above` out")
            if setting.above < 0:
                raise RippleError(f"`above` of {name} is negative", where, "say 0 or more")
            above[name] = setting.above
    exceptions = said_of.exceptions
    if isinstance(exceptions, str):
        where = str(project_dir / exceptions)
        exceptions = _exceptions_in(project_dir / exceptions, str(file))
    for exception in exceptions:
        _known_rule(exception.rule, where)
        if not exception.reason.strip():
            raise RippleError(
                f"the exception of {exception.unique_id} from {exception.rule} has no reason",
                where,
                "say why",
            )
    return Config(levels, above, tuple(exceptions))


def _exceptions_in(file: Path, where: str) -> list[Excepted]:
    """Exceptions in a seed's file, which the dbt models of the rules can read as well."""
    import csv

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
    except msgspec.ValidationError as error:
        raise RippleError(
            str(error), str(file), "its columns are rule, unique_id, column_name, reason"
        ) from None


def _known_rule(name: str, where: str) -> None:
    if name in RULES:
        return
    raise RippleError(
        f"no rule {name!r}",
        where,
        did_you_mean(name, RULES, f"the rules are {', '.join(RULES)}"),
    )


def _setting(name: str, said: Any, where: str) -> Setting:
    if said is False:  # YAML reads a bare `off` so
        said = "off"
    if isinstance(said, dict) and said.get("level") is False:
        said = {**said, "level": "off"}
    level = said.get("level") if isinstance(said, dict) else said
    if level is not None and level not in LEVELS:
        raise RippleError(
            f"{level!r} is no level of {name}",
            where,
            did_you_mean(str(level), LEVELS, f"say {', '.join(LEVELS)}"),
        )
    try:
        return msgspec.convert(said if isinstance(said, dict) else {"level": said}, Setting)
    except msgspec.ValidationError as error:
        raise RippleError(
            f"of rule {name}: {error}", where, "a rule has a level and, some, `above`"
        ) from None
