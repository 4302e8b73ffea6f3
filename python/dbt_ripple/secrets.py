"""Keeps secrets out of what is printed, written and sent.

What counts as one:

* the value of an environment variable whose name says so (``DBT_ENV_SECRET_...``, and names with words
  like ``TOKEN``, ``PASSWORD`` or ``KEY`` in them);
* the value of any environment variable that a text of the project reads (`learn_from`), unless it is short
  or a name that the project shows anyway;
* the password in an address, and what its query calls a password, key, token or signature.

Each is replaced by three stars wherever it stands: as it is, in JSON, in HTML and in an address. What is
derived from a secret otherwise (a part of it, a hash, base64) is not found.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import Any, Final, TypeVar
from urllib.parse import quote

_T = TypeVar("_T")

STARS: Final = "***"

_SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:auth|authorization|cert|credentials?|dsn|key|keyfile|passphrase|passw(?:or)?d|pass|pwd|private"
    r"|salt|secrets?|signature|token|tokens)(?:_|$)|apikey|secret|password|token",
    re.I,
)
_ALWAYS: Final = "DBT_ENV_SECRET"
_SHORTEST_OF_NAME: Final = 6
_SHORTEST: Final = 8
"""Characters below which a value is too common to be told from other words."""
_COMMON: Final = frozenset(
    "admin changeme default duckdb example guest localhost password postgres public secret".split()
)
"""Passwords of services that a job starts for itself."""

_ENV_VAR: Final = re.compile(r"""env_var\s*\(\s*['"](\w+)['"]""")
_IN_ADDRESS: Final = re.compile(r"(?<=://)([^\s/?#'\"<>:@]*):([^\s/'\"<>]+)@")
_TOKEN_IN_ADDRESS: Final = re.compile(r"(?<=://)[^\s/?#'\"<>:@]{16,}@")
_IN_QUERY: Final = re.compile(
    r"([?&;](?:[\w.-]*[_-])?(?:access_?key|access_?token|api_?key|auth|credential|key|passw(?:or)?d|pwd|secret"
    r"|sig|signature|sslpassword|token)=)[^&;\s'\"<>#]+",
    re.I,
)

_learnt: set[str] = set()


def names_a_secret(name: str) -> bool:
    """Whether a name says that what it names is a secret.

    Example:
        >>> names_a_secret("settings.s3_secret_access_key"), names_a_secret("settings.integer_division")
        (True, False)
    """
    return _SECRET_NAME.search(name) is not None


_SHOWN_SETTINGS: Final = frozenset(
    "config_options extensions method role search_path server_side_parameters session_parameters settings type".split()
)
"""Settings of a target whose values are shown, unless their names are those of secrets; others may hold one."""


def setting_as_shown(key: str, value: str) -> str:
    """A setting of a target as it may be shown: three stars for what may be a secret; nothing stays nothing.

    Example:
        >>> setting_as_shown("settings.integer_division", "true"), setting_as_shown("attach", "[x]")
        ('true', '***')
    """
    harmless = value in ("", "true", "false") or key.partition(".")[0] in _SHOWN_SETTINGS
    return value if harmless and not (value and names_a_secret(key)) else STARS


def learn_from(texts: Iterable[str], shown: Callable[[], Collection[str]] = tuple) -> None:
    """Learn which environment variables a project reads: their values are not printed from now on.

    Args:
        texts: what Jinja renders of the project.
        shown: the names that it shows anyway, such as those of schemas; asked where there are variables.
    """
    names = {name for text in texts if "env_var" in text for name in _ENV_VAR.findall(text)}
    values = {os.environ.get(name, "") for name in names}
    values = {value for value in values if len(value) >= _SHORTEST and not value.isdigit()}
    if values:
        _learnt.update(values.difference(shown()))


def scrub(text: str) -> str:
    """A text without secrets.

    Example:
        >>> scrub("postgres://ada:hunter2@db:5432/shop?sslkey=abc&x=1")
        'postgres://ada:***@db:5432/shop?sslkey=abc&x=1'
        >>> scrub("https://api.shop.com/v1?api_key=abc&page=2")
        'https://api.shop.com/v1?api_key=***&page=2'
        >>> scrub("git@github.com:shop/dbt.git and https://github.com/shop")
        'git@github.com:shop/dbt.git and https://github.com/shop'
    """
    return scrubber()(text)


def scrubber() -> Callable[[str], str]:
    """`scrub` for many texts: what is secret now is found out once."""
    pattern = _pattern(tuple(sorted(_secrets())))

    def scrub(text: str) -> str:
        if "://" in text:
            text = _IN_ADDRESS.sub(rf"\1:{STARS}@", text)
            text = _TOKEN_IN_ADDRESS.sub(f"{STARS}@", text)
            text = _IN_QUERY.sub(rf"\1{STARS}", text)
        return text if pattern is None else pattern.sub(STARS, text)

    return scrub


def scrub_bytes(content: bytes) -> bytes:
    """The same of a file; what is no text stays as it is."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    scrubbed = scrub(text)
    return content if scrubbed is text or scrubbed == text else scrubbed.encode()


def scrub_value(value: _T) -> _T:
    """A value in which no text has a secret: of lists, mappings and objects, their parts.

    Objects other than structs are written into, so they must be the caller's own.
    """
    return _scrubbed(value, scrubber(), {})  # type: ignore[no-any-return]


def _scrubbed(value: Any, scrub: Callable[[str], str], done: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(value, str):
        return scrub(value) if type(value) is str else value
    if value is None or isinstance(value, (bool, int, float, bytes, type)):
        return value
    if id(value) in done:
        return done[id(value)][1]
    done[id(value)] = value, value  # what it holds may hold it
    result = value
    if isinstance(value, dict):
        result = {
            _scrubbed(key, scrub, done): _scrubbed(part, scrub, done) for key, part in value.items()
        }
    elif type(value) in (list, tuple):
        result = type(value)(_scrubbed(part, scrub, done) for part in value)
    elif hasattr(type(value), "__struct_fields__"):
        import msgspec

        fields = type(value).__struct_fields__
        changed = {name: _scrubbed(getattr(value, name), scrub, done) for name in fields}
        result = msgspec.structs.replace(value, **changed)
    else:
        for name in (*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ())):
            part = getattr(value, name, None)
            scrubbed = _scrubbed(part, scrub, done)
            if scrubbed is not part:
                object.__setattr__(value, name, scrubbed)
    done[id(value)] = value, result
    return result


def _secrets() -> set[str]:
    """The values that are secret now; dbt and tests may set others meanwhile."""
    return _learnt | _of_environment(tuple(os.environ.items()))


@cache
def _of_environment(environment: tuple[tuple[str, str], ...]) -> frozenset[str]:
    return frozenset(
        value
        for name, value in environment
        if (
            (name.startswith(_ALWAYS) and len(value) >= 4)
            or (
                names_a_secret(name)
                and len(value) >= _SHORTEST_OF_NAME
                and value.lower() not in _COMMON
                and not value.startswith(("/", "./", "~"))
            )
        )
    )


@cache
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    spellings: set[str] = set()
    for secret in secrets:
        for one in {secret, secret.strip(), *secret.split("\n")}:
            if len(one) >= 4:
                in_json = json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1]
                spellings |= {one, *in_json, html.escape(one), quote(one, safe="")}
    if not spellings:
        return None
    longest_first = sorted(spellings, key=lambda one: (-len(one), one))
    return re.compile("|".join(map(re.escape, longest_first)))
