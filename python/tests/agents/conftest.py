"""The fixtures of `agent_clients`, whose names tests can import, too."""

from __future__ import annotations

from agent_clients import over_http, over_stdio, served, stories  # noqa: F401
