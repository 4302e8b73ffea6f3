"""Rows as Parquet files in a folder that the server reads, too: `load --stage URL`.

The folder is one that this machine and the server both have, a bucket, or a volume of Unity Catalog. Each
load has a subfolder of its own in it, which is removed when the load ends. One that was killed leaves its
subfolder there; nothing reads it again.
"""

from __future__ import annotations

import contextlib
import io
import re
import uuid
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from dbt_ripple.errors import RippleError
from dbt_ripple.spark.load import arrow_table
from dbt_ripple.spark.server import CHUNK, Batch

if TYPE_CHECKING:
    import msgspec

_VOLUME: Final = re.compile(r"(?:dbfs:)?(/Volumes/[^/]+/[^/]+/[^/]+(?:/.*)?)")


class _Files(Protocol):
    """A place for files."""

    def write(self, path: str, content: bytes) -> None:
        """Write a file below the place, and the folders above it."""

    def clear(self, folder: str, paths: Sequence[str]) -> None:
        """Remove the folder below the place, with these files in it."""


class Stage:
    """The subfolder of one load.

    Args:
        url: the folder: a path on this machine that the server has, too, or a URL of s3, s3a, gs, abfss or
            hdfs, or a path in a volume (``/Volumes/catalog/schema/volume``).
        adapter: dbt's adapter, whose workspace a volume is in.

    Raises:
        RippleError: the URL is none, or cannot be written with what is installed here.
    """

    def __init__(self, url: str, adapter: Any = None) -> None:
        self._given = url
        self._folder = f"dbt_ripple_{uuid.uuid4().hex}"
        self._paths: list[str] = []
        volume = _VOLUME.fullmatch(url.rstrip("/"))
        try:
            if volume:
                self._url = volume[1]
                self._files: _Files = _Volume(volume[1], adapter)
            else:
                # Hadoop takes the characters of a URL as they are, so a path is not encoded.
                local = "://" not in url
                self._url = (
                    f"file://{Path(url).expanduser().resolve()}" if local else url.rstrip("/")
                )
                self._files = _FileSystem(self._url)
        except Exception as error:  # of pyarrow or Databricks' client, by what is wrong with it
            raise self._refusal("cannot be used", error) from error

    def batches(
        self, table: str, names: Sequence[str], rows: Sequence[msgspec.Struct]
    ) -> Generator[Batch, None, None]:
        """Write rows into files, a quarter of a million each; otherwise as ``Server`` says."""
        import pyarrow.parquet as pq

        for number, start in enumerate(range(0, max(len(rows), 1), CHUNK)):
            chunk = rows[start : start + CHUNK]
            content = io.BytesIO()
            pq.write_table(arrow_table(table, chunk).select(names), content)
            path = f"{self._folder}/{table}-{number}.parquet"
            self._paths.append(path)
            try:
                self._files.write(path, content.getvalue())
            except Exception as error:
                raise self._refusal("cannot be written", error) from error
            there = f"{self._url}/{path}"
            quoted = there.replace("`", "``")
            literal = there.replace("\\", "\\\\").replace("'", "\\'")
            yield Batch(len(chunk), f"parquet.`{quoted}`", f"'{literal}'")

    def clear(self) -> None:
        """Remove what was written; what cannot be removed is left there."""
        if self._paths:
            with contextlib.suppress(Exception):  # the load is done or has failed, and has said so
                self._files.clear(self._folder, self._paths)

    def _refusal(self, what: str, error: Exception) -> RippleError:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return RippleError(
            f"{what} ({reason})",
            f"--stage {self._given}",
            "name a folder that this machine writes and the server reads, or leave --stage out",
        )


class _FileSystem:
    """A folder or a bucket, by pyarrow."""

    def __init__(self, url: str) -> None:
        from pyarrow.fs import FileSystem, LocalFileSystem

        self._files: Any
        if url.startswith("file://"):
            self._files, self._root = LocalFileSystem(), url.removeprefix("file://")
            return
        # s3a is Hadoop's name of S3, by which the server reads it.
        self._files, self._root = FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", url))

    def write(self, path: str, content: bytes) -> None:
        there = f"{self._root}/{path}"
        self._files.create_dir(there.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(there) as stream:
            stream.write(content)

    def clear(self, folder: str, paths: Sequence[str]) -> None:
        self._files.delete_dir(f"{self._root}/{folder}")


class _Volume:
    """A volume of Unity Catalog, by the client that dbt-databricks brings, with the profile's credentials."""

    def __init__(self, path: str, adapter: Any) -> None:
        from dbt.adapters.databricks.credentials import DatabricksCredentialManager

        manager = DatabricksCredentialManager.create_from(adapter.config.credentials)
        self._files = manager.api_client.files
        self._root = path

    def write(self, path: str, content: bytes) -> None:
        there = f"{self._root}/{path}"
        self._files.create_directory(there.rpartition("/")[0])
        self._files.upload(there, io.BytesIO(content), overwrite=True)

    def clear(self, folder: str, paths: Sequence[str]) -> None:
        for path in paths:
            self._files.delete(f"{self._root}/{path}")
        self._files.delete_directory(f"{self._root}/{folder}")
