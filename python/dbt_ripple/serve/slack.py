"""The slash command of Slack: ``/lineage analytics.revenue_daily.total_usd --since 24h``.

Slack signs each request with a secret that only it and this server know. A request whose signature is wrong,
that is older than five minutes, or that has been here before, is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import shlex
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from dbt_ripple.collector.guard import Refusal
from dbt_ripple.rendering.incident import timedelta_of

PATH: Final = "/slack/lineage"
_SECONDS: Final = 300
"""Between Slack's clock and ours; what is older may be one that somebody has kept."""
_REMEMBERED: Final = 10_000
USAGE: Final = "say `/lineage NODE[.COLUMN] --since 24h`: 90m, 24h or 7d"


class SlackCommand(NamedTuple):
    """What is asked.

    Attributes:
        node: a test, a node, or a column of one.
        since: how long ago a change is still recent.
    """

    node: str
    since: timedelta


class SlackSignature:
    """Whether requests come from Slack, each once.

    Args:
        secret: Slack's signing secret of the app.
        clock: seconds since the epoch.
    """

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._seen: OrderedDict[str, float] = OrderedDict()

    def check(self, timestamp: str, signature: str, body: bytes) -> None:
        """Refuse a request that is not Slack's, or no new one.

        Raises:
            Refusal: 401.
        """
        now = self._clock()
        if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 15:
            raise _refused("the request has no time of Slack's")
        signed = b"v0:" + timestamp.encode() + b":" + body
        expected = "v0=" + hmac.new(self._secret, signed, hashlib.sha256).hexdigest()
        # Compared in a time that does not depend on how much of it is right.
        if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):
            raise _refused("the request is not signed by Slack")
        if abs(now - int(timestamp)) > _SECONDS:
            raise _refused("the request is too old")
        while self._seen and next(iter(self._seen.values())) < now - 2 * _SECONDS:
            self._seen.popitem(last=False)
        if expected in self._seen:
            raise _refused("the request has been here before")
        if len(self._seen) >= _REMEMBERED:  # of none of these it may be forgotten
            raise Refusal(429, "rate", "too many requests", headers={"Retry-After": "60"})
        self._seen[expected] = now


def command_of(body: bytes) -> SlackCommand | None:
    """What the form of a slash command asks; None if that is nothing."""
    try:
        fields = parse_qs(body.decode("utf-8"), max_num_fields=100)
        words = shlex.split(fields.get("text", [""])[0])
    except ValueError:
        return None
    since: timedelta | None = timedelta(hours=24)
    if len(words) == 3 and words[1] == "--since":
        since = timedelta_of(words[2])
    elif len(words) != 1:
        return None
    if since is None or words[0].startswith("-"):
        return None
    return SlackCommand(words[0], since)


def _refused(why: str) -> Refusal:
    return Refusal(401, "token", why)
