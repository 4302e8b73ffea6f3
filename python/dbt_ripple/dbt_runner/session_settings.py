"""What a profiles.yml says of a target's session: settings, extensions, attached files.

dbt writes none of it into its artifacts. With ``--base-ref`` both sides' files are at hand; beside a state,
`keep_settings` leaves them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts.paths import text_of_file
from dbt_ripple.artifacts.read_yaml import parse_yaml
from dbt_ripple.artifacts.source_locations import PROJECT_FILE
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.secrets import setting_as_shown

FILE: Final = "ripple_session.json"
"""Beside the artifacts of a state: its session's settings by key; three stars for a value that may be a secret."""

_OF_THE_CONNECTION: Final = frozenset(
    """
    account aws_access_key_id aws_profile_name aws_secret_access_key auth_type authenticator catalog client_id
    client_secret client_session_keep_alive cluster cluster_id connect_retries connect_timeout connection_parameters
    database dataset dbname endpoint fixed_retries host http_path http_scheme iam_profile job_execution_timeout_seconds
    job_retries keepalives_idle keyfile keyfile_json location oauth_client_id oauth_client_secret organization
    pass passphrase password path port priority private_key private_key_path private_key_passphrase project
    query_timeout refresh_token region region_name reuse_connections retries retry_all retry_on_database_errors
    s3_data_dir s3_staging_dir schema server sslcert sslkey sslmode sslrootcert threads timeout_seconds token
    token_uri use_ssl user username work_group
    """.split()
)
"""Keys of a target that say where it is and who asks: another target of the same session. All others count."""


class _Kept(msgspec.Struct, frozen=True):
    target: str
    settings: dict[str, str]


def keep_settings(folder: Path, project_dir: Path, options: DbtOptions) -> None:
    """Keep the session's settings beside the artifacts of a state; nothing where they cannot be read or written."""
    settings = _shown_today(project_dir, options)
    if settings is not None:
        with contextlib.suppress(OSError):
            (folder / FILE).write_bytes(msgspec.json.encode(settings))


def settings_beside(
    state: Path, project_dir: Path, options: DbtOptions
) -> tuple[dict[str, str], dict[str, str]]:
    """The settings kept beside a state, and those that today's profiles.yml has of the same target.

    Both are empty where one of them is not known, as where today's file has no target of this name.
    """
    try:
        before = msgspec.json.decode((state / FILE).read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):
        return {}, {}
    now = _shown_today(project_dir, replace(options, target=before.target))
    return (before.settings, now.settings) if now is not None else ({}, {})


def _shown_today(project_dir: Path, options: DbtOptions) -> _Kept | None:
    folder = options.resolved(project_dir).profiles_dir or project_dir
    found = _target_in(folder / "profiles.yml", profile_named_by(project_dir), options)
    if found is None:
        return None
    name, target = found
    shown = {key: setting_as_shown(key, value) for key, value in _session_of(target).items()}
    return _Kept(name, shown)


def settings_in(file: Path, profile: Any, options: DbtOptions) -> dict[str, str] | None:
    """What a profile says of the session of its target, as text by key; None where that cannot be read."""
    found = _target_in(file, profile, options)
    return _session_of(found[1]) if found is not None else None


def _target_in(file: Path, profile: Any, options: DbtOptions) -> tuple[str, dict[Any, Any]] | None:
    """The target that dbt would take of a profiles.yml, after its name; None where that cannot be read."""
    try:
        profile = options.profile or os.environ.get("DBT_PROFILE") or profile
        profile = parse_yaml(text_of_file(file) or "", "", as_dbt=True)[profile]
        name = options.target or os.environ.get("DBT_TARGET") or profile.get("target") or "default"
        target = profile["outputs"][name]
    except (RippleError, KeyError, TypeError, AttributeError):
        return None
    return (str(name), target) if isinstance(target, dict) else None


def _session_of(target: dict[Any, Any]) -> dict[str, str]:
    keys = sorted(map(str, target.keys() - _OF_THE_CONNECTION))
    return dict(pair for key in keys for pair in _settings(key, target.get(key)))


def _settings(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A setting as text; of a mapping each entry, after the name and a dot."""
    if isinstance(value, dict) and value:
        for key in sorted(value, key=str):
            yield from _settings(f"{name}.{key}", value[key])
    else:
        text = msgspec.json.encode(value, order="sorted", enc_hook=str).decode()
        yield name, value if isinstance(value, str) else text


def profile_named_by(project_dir: Path) -> Any:
    """The profile that a project file names; the whole text where it is not YAML."""
    text = text_of_file(project_dir / PROJECT_FILE)
    try:
        return parse_yaml(text or "", "", as_dbt=True).get("profile")
    except (RippleError, AttributeError):
        return text
