"""Sends the body of an incident: one POST, tried again where that can help.

Addresses and keys are secrets. They come from the environment, and nothing that is printed has them: no address, no
text of an exception of the HTTP client (which quotes it), no answer of a server beyond its status.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Mapping

SLACK_URL: Final = "DBT_RIPPLE_SLACK_URL"
PAGERDUTY_KEY: Final = "DBT_RIPPLE_PAGERDUTY_KEY"
PAGERDUTY_URL: Final = "DBT_RIPPLE_PAGERDUTY_URL"
WEBHOOK_URL: Final = "DBT_RIPPLE_WEBHOOK_URL"
WEBHOOK_TOKEN: Final = "DBT_RIPPLE_WEBHOOK_TOKEN"

_EVENTS: Final = "https://events.pagerduty.com/v2/enqueue"
TRIES: Final = 4
CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 15.0
LONGEST_WAIT: Final = 20.0
"""Seconds that a server may ask to wait before the next try; longer, and it counts as refused."""
_AGAIN: Final = (429, 500, 502, 503, 504)


class IncidentReceiver(NamedTuple):
    """Where something is sent.

    Attributes:
        service: slack, pagerduty or webhook.
        url: the address.
        variable: the environment variable it is from, by which messages name it.
        headers: beside those of JSON.
        key: PagerDuty's routing key; empty for others.
    """

    service: str
    url: str
    variable: str
    headers: dict[str, str]
    key: str = ""


def destination(service: str, environment: Mapping[str, str] = os.environ) -> IncidentReceiver:
    """Where an incident goes, by the environment.

    Raises:
        RippleError: a variable is missing, or is no address; ``requests`` is not installed.
    """
    require_extra("send")
    headers: dict[str, str] = {}
    key = ""
    if service == "pagerduty":
        key = _required(
            environment, PAGERDUTY_KEY, "the integration key of a service (Events API v2)"
        )
        variable, url = PAGERDUTY_URL, environment.get(PAGERDUTY_URL) or _EVENTS
    elif service == "slack":
        variable, url = (
            SLACK_URL,
            _required(environment, SLACK_URL, "the URL of an incoming webhook"),
        )
    else:
        variable = WEBHOOK_URL
        url = _required(environment, WEBHOOK_URL, "the URL that is to get the incident")
        if token := environment.get(WEBHOOK_TOKEN):
            if not token.isascii() or not token.isprintable():
                raise RippleError(
                    "has characters that a header cannot have", WEBHOOK_TOKEN, "mend it"
                )
            headers["Authorization"] = f"Bearer {token}"
    _check(url, variable, secret_in_body=service != "webhook" or bool(headers))
    return IncidentReceiver(service, url, variable, headers, key)


def _required(environment: Mapping[str, str], name: str, what: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise RippleError("is not set", name, f"set it to {what}")
    return value


def _check(url: str, variable: str, *, secret_in_body: bool) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        raise RippleError("is no http or https address", variable, "mend it")
    here = host == "localhost" or host == "::1" or host.startswith("127.")
    if parts.scheme == "http" and secret_in_body and not here:
        raise RippleError("would send a secret unencrypted", variable, "give an https address")


def send(to: IncidentReceiver, body: bytes) -> int:
    """Send a body, and return the status with which it was taken.

    It is tried up to `TRIES` times where the server cannot be reached, is too busy, or fails itself. So it may
    arrive twice; PagerDuty knows it again by its dedup_key. Redirects are not followed: a key would go along.

    Raises:
        RippleError: it was not taken.
    """
    import requests
    from requests.adapters import HTTPAdapter

    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=_retries()))
        session.mount("https://", HTTPAdapter(max_retries=_retries()))
        try:
            answer = session.post(
                to.url,
                data=body,
                headers={"Content-Type": "application/json; charset=utf-8", **to.headers},
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
            )
        except requests.RequestException as error:
            what = _WORDS.get(type(error).__name__, "the request failed")
            # Without its cause: the client's own sentences quote the address.
            raise RippleError(
                f"{to.service} did not take it: {what}, after {TRIES} tries",
                to.variable,
                "check the address, the network and its proxy",
            ) from None
    if 200 <= answer.status_code < 300:
        return answer.status_code
    error_code = answer.text.strip() if len(answer.content) < 100 else ""
    # Slack's own codes, such as invalid_blocks: no word that could quote anything.
    code = (
        f" ({error_code})"
        if to.service == "slack" and re.fullmatch("[a-z]+(_[a-z]+)+", error_code)
        else ""
    )
    raise RippleError(
        f"{to.service} did not take it: status {answer.status_code}{code}",
        to.variable,
        _ADVICE.get(answer.status_code, "check the address and the key"),
    )


_WORDS: Final = {
    "ConnectTimeout": "no connection in time",
    "ReadTimeout": "no answer in time",
    "SSLError": "its certificate cannot be verified",
    "ProxyError": "the proxy refuses",
    "ConnectionError": "it cannot be reached",
    "RetryError": "it cannot be reached",
}
_ADVICE: Final = {
    429: "it takes no more for now: try again later",
    301: "redirects are not followed: give the address itself",
    302: "redirects are not followed: give the address itself",
    307: "redirects are not followed: give the address itself",
    308: "redirects are not followed: give the address itself",
}


def _retries() -> Any:
    from urllib3.util import Retry

    class Patient(Retry):
        """Waits as long as the server asks, but not for ever."""

        def get_retry_after(self, response: Any) -> float | None:
            asked = super().get_retry_after(response)
            return None if asked is None else min(asked, LONGEST_WAIT)

    return Patient(
        total=TRIES - 1,
        backoff_factor=0.5,
        backoff_max=LONGEST_WAIT,
        status_forcelist=_AGAIN,
        allowed_methods=frozenset({"POST"}),
        raise_on_status=False,
    )
