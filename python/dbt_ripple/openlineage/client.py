"""The openlineage-python client: that it is installed, and events handed to it.

Its transports, ``OPENLINEAGE_URL``, ``openlineage.yml``, ``OPENLINEAGE_DISABLED`` and the rest of its
configuration mean what they mean everywhere. Nothing here reads them but to say what happens.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from dbt_ripple import __version__
from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra
from dbt_ripple.secrets import scrub, scrub_value

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import DatasetEvent, JobEvent, RunEvent

    Event: TypeAlias = RunEvent | JobEvent | DatasetEvent

PRODUCER: Final = f"pkg:pypi/dbt-ripple@{__version__}"
"""Who made an event, as the URI that OpenLineage asks for: a package URL."""


class Sender(Protocol):
    """Where events go.

    Attributes:
        where: in words.
    """

    where: str

    def send(self, event: Event) -> None:
        """Send one event.

        Raises:
            RippleError: it could not be sent.
        """

    def close(self) -> None:
        """Wait until all that was sent has arrived.

        Raises:
            RippleError: some of it did not.
        """


class Nowhere:
    """Events that are not sent, because OPENLINEAGE_DISABLED says so."""

    where = "nowhere"

    def send(self, event: Event) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class ToFile:
    """Events as NDJSON: one a line, in the order they are sent."""

    def __init__(self, file: IO[str], where: str) -> None:
        self.where = where
        self._file = file

    def send(self, event: Event) -> None:
        """Write one line."""
        try:
            self._file.write(scrub(as_json(event)) + "\n")
            self._file.flush()
        except OSError as error:
            raise RippleError(f"cannot be written ({error.strerror})", self.where) from error

    def close(self) -> None:
        """Nothing is waited for."""


class ToTransport:
    """Events to the transport that the client's configuration names.

    Raises:
        RippleError: the configuration names none, or cannot be read.
    """

    def __init__(self) -> None:
        # It warns of each of its tries; the error says it when they are over.
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
        self._client = new_client()
        transport = self._client.transport
        self.is_disabled = transport.kind == "noop"
        self._has_sent = False
        self.where = str(getattr(transport, "url", None) or f"the transport {transport.kind}")

    def send(self, event: Event) -> None:
        """Hand one event to the transport."""
        if not self._has_sent and (why := silent(self._client)):
            raise RippleError(
                f"nobody answers there ({why})", self.where, "start the collector and send again"
            )
        self._has_sent = True
        try:
            self._client.emit(scrub_value(event))
        except Exception as error:  # whatever a transport raises
            raise RippleError(
                f"an event could not be sent ({reason_of(error)})",
                self.where,
                "send all events again when it can be reached: they are the same ones",
            ) from error

    def close(self) -> None:
        """Have the transport send what it holds back."""
        try:
            arrived = self._client.close()
        except Exception as error:
            raise RippleError(f"not all was sent ({reason_of(error)})", self.where) from error
        if not arrived:
            raise RippleError("not all events were taken", self.where, "send them again")


def new_client() -> OpenLineageClient:
    """A client as its configuration says.

    Raises:
        RippleError: no transport is configured, or the configuration is wrong.
    """
    require_extra("openlineage")
    from openlineage.client import OpenLineageClient

    log = logging.getLogger("openlineage.client.client")
    level, log.level = log.level, logging.ERROR  # that there is no transport is reported below
    try:
        client = OpenLineageClient()
    except Exception as error:  # of any transport's configuration
        raise RippleError(
            f"its configuration is wrong ({reason_of(error)})",
            "openlineage-python",
            "mend openlineage.yml or the variables OPENLINEAGE_...",
        ) from error
    finally:
        log.level = level
    if client.transport.kind == "console":
        if not (client.config.transport or {}).get("type"):
            raise RippleError(
                "no OpenLineage transport is configured",
                fix="set OPENLINEAGE_URL, write an openlineage.yml, or write the events to a file"
                " by --output FILE",
            )
        console = logging.getLogger("openlineage.client.transport.console")
        if not console.handlers:
            console.addHandler(logging.StreamHandler(sys.stderr))
        console.setLevel(logging.INFO)
    return client


def silent(client: OpenLineageClient) -> str | None:
    """Why nobody listens where a client sends to by HTTP, found out at once; None where somebody does.

    The client itself tries again for a while. Through a proxy it is not asked.
    """
    where = urllib.parse.urlsplit(str(getattr(client.transport, "url", "")))
    if where.scheme not in ("http", "https") or where.hostname is None:
        return None
    if where.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(
        where.hostname
    ):
        return None
    port = where.port or (443 if where.scheme == "https" else 80)
    try:
        socket.create_connection((where.hostname, port), timeout=_ANSWERS_IN).close()
    except TimeoutError:
        return f"no answer in {_ANSWERS_IN:g} seconds"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


_ANSWERS_IN: Final = 5.0


def reason_of(error: BaseException) -> str:
    """What an exception says, in one short line: of a failed connection what the system said of it."""
    message = " ".join(str(error).split())
    by_system = re.search(r"\[Errno -?\d+\] ([^'\")]+)", message)
    return (by_system[1].lower() if by_system else message[:300]) or type(error).__name__


def is_disabled() -> bool:
    """Whether ``OPENLINEAGE_DISABLED`` says that nothing is sent."""
    return os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true"


def as_json(event: Event) -> str:
    """An event as one line of JSON, as the client's transports write it."""
    from openlineage.client.serde import Serde

    return Serde.to_json(event)


def send_all(events: Iterable[Event], sender: Sender) -> int:
    """Send events and wait until they have arrived.

    Returns:
        How many there were.

    Raises:
        RippleError: one could not be sent; it says after how many.
    """
    sent = 0
    try:
        for event in events:
            sender.send(event)
            sent += 1
    except RippleError as error:
        if not sent:
            raise
        raise RippleError(f"{error.what}, after {sent} others", error.where, error.fix) from error
    sender.close()
    return sent


def faceted(kind: Any, /, **fields: Any) -> Any:
    """A facet of ours: it says who made it."""
    return kind(producer=PRODUCER, **fields)
