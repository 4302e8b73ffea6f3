"""The acryl-datahub client: that it is installed, and metadata handed to it as a file or to a server.

Its settings (``DATAHUB_GMS_URL``, ``DATAHUB_GMS_TOKEN``, ``~/.datahubenv``) mean what they mean to it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra
from dbt_ripple.secrets import scrub, scrub_value

if TYPE_CHECKING:
    from dbt_ripple.datahub.proposals import Proposal

_AT_ONCE: Final = 100


def require_client() -> None:
    """Refuse to go on where acryl-datahub is not installed; its telemetry is off in this process."""
    require_extra("datahub")
    os.environ.setdefault("DATAHUB_TELEMETRY_ENABLED", "false")


def write(proposals: Iterable[Proposal], file: IO[str], where: str) -> int:
    """Write metadata as the JSON array that DataHub's file source reads.

    Returns:
        How many proposals there were.

    Raises:
        RippleError: the file cannot be written.
    """
    objects = [_as_object(proposal) for proposal in proposals]
    try:
        file.write(scrub(json.dumps(objects, indent=2)) + "\n")
        file.flush()
    except OSError as error:
        raise RippleError(f"cannot be written ({error.strerror})", where) from error
    return len(objects)


def _as_object(proposal: Proposal) -> Any:
    """As DataHub's own file sink writes it: the aspect as JSON, and not as a text of JSON."""
    from datahub.emitter.mcp import MetadataChangeProposalWrapper

    if isinstance(proposal, MetadataChangeProposalWrapper):
        return proposal.to_obj(simplified_structure=True)
    content = proposal.to_obj()
    return content | {"aspect": {"json": json.loads(content["aspect"]["value"])}}


def send(proposals: Sequence[Proposal], server: str | None) -> str:
    """Send metadata to a server by REST, in the order given.

    Args:
        proposals: the metadata.
        server: its URL; None is that of the client's configuration.

    Returns:
        The URL.

    Raises:
        RippleError: there is no server, or it did not take all.
    """
    from datahub.cli.config_utils import load_client_config
    from datahub.ingestion.graph.client import DataHubGraph
    from datahub.ingestion.graph.config import DatahubClientConfig

    # They say what they try; the error says it when it is over.
    for name in ("datahub", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        config = (
            load_client_config()
            if server is None
            else DatahubClientConfig(server=server, token=os.environ.get("DATAHUB_GMS_TOKEN"))
        )
    except (Exception, SystemExit) as error:  # it ends the process where its file is wrong
        raise RippleError(
            "no DataHub server is configured",
            fix="give --server URL, set DATAHUB_GMS_URL, or write a file by --output FILE",
        ) from error
    where, sent = str(config.server), 0
    try:
        with DataHubGraph(config) as graph:
            for begin in range(0, len(proposals), _AT_ONCE):
                batch = [scrub_value(one) for one in proposals[begin : begin + _AT_ONCE]]
                graph.emit_mcps(batch)
                sent += len(batch)
    except Exception as error:  # whatever it raises
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        after = f", after {sent} others" if sent else ""
        raise RippleError(
            f"metadata could not be sent ({reason}){after}",
            where,
            "send all again when it can be reached: it is the same metadata",
        ) from error
    return where
