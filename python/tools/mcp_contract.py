"""Prints the contract of `dbt-ripple mcp` with agents: `python python/tools/mcp_contract.py > python/tests/agents/contract.json`."""

from __future__ import annotations

import hashlib
import json

from dbt_ripple.mcp.documents import whole_schema
from dbt_ripple.mcp.server import INSTRUCTIONS, PROMPTS, tool
from dbt_ripple.mcp.tools import TOOLS


def contract() -> dict[str, object]:
    """Every tool with its description and arguments; of its output the fields, and a digest of its whole schema."""
    tools = []
    for name in TOOLS:
        listed = tool(name).model_dump(mode="json", exclude_none=True)
        output = listed.pop("output_schema")
        listed["output_fields"] = output["required"]
        listed["output_digest"] = hashlib.sha256(
            json.dumps(whole_schema(name), sort_keys=True).encode()
        ).hexdigest()[:16]
        tools.append(listed)
    prompts = {name: sorted(one.arguments) for name, one in PROMPTS.items()}
    return {"instructions": INSTRUCTIONS, "tools": tools, "prompts": prompts}


if __name__ == "__main__":
    print(json.dumps(contract(), indent=1))
