"""Calls the tools of an MCP server with the official Python SDK, as the story in a file tells it.

Prints a JSON line about the server, then one for each step.
"""

import asyncio
import json
import pathlib
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def server(story):
    if "url" in story:
        headers = {"Authorization": f"Bearer {story['token']}"}
        http = httpx2.AsyncClient(headers=headers, timeout=60)
        return streamable_http_client(story["url"], http_client=http)
    return StdioServerParameters(command=story["command"], args=story["args"], env=story["env"])


async def call(client, step):
    seconds = step.get("timeoutMs", 45_000) / 1000
    try:
        result = await client.call_tool(step["tool"], step["arguments"], read_timeout_seconds=seconds)
    except Exception as error:  # a time-out has another type in each transport
        return {"failed": str(error) or type(error).__name__}
    texts = [block.text for block in result.content if block.type == "text"]
    return {"isError": bool(result.is_error), "value": result.structured_content, "text": "\n".join(texts)}


async def main():
    story = json.loads(pathlib.Path(sys.argv[1]).read_text())
    async with Client(server(story), mode=story["era"]) as client:
        tools = await client.list_tools()
        version = client.session.protocol_version
        print(json.dumps({"tools": [tool.name for tool in tools.tools], "version": version}), flush=True)
        for step in story["steps"]:
            if "write" in step:
                pathlib.Path(step["write"]).touch()
            answer = await call(client, step)
            for _ in range(step.get("tries", 0)):
                if (answer.get("value") or {}).get("status") == step["until"]:
                    break
                answer = await call(client, step)
            print(json.dumps(answer), flush=True)


asyncio.run(main())
