"""A small MCP server on standard input and output, with one tool that adds. Run by Codex."""

import json
import sys
from typing import Any

ADD = {
    "name": "add",
    "description": "Adds two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "sums", "version": "1"},
            }
        case "tools/list":
            return {"tools": [ADD]}
        case "tools/call":
            given = params["arguments"]
            return {"content": [{"type": "text", "text": f"the sum is {given['a'] + given['b']}"}]}
        case _:
            return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message.get("params", {}))}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
