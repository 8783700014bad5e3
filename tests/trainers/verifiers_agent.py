"""A harness of `verifiers` for tests: it searches once with the task's tools, then asks the model for the answer."""

import httpx
import verifiers.v1 as vf
from mcp import Client


class AgentConfig(vf.HarnessConfig):
    query: str = "river Arnby"


class Agent(vf.Harness[AgentConfig]):
    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        (url,) = mcp_urls.values()
        async with Client(url) as tools:
            listed = {tool.name for tool in (await tools.list_tools()).tools}
            found = await tools.call_tool("search", {"query": self.config.query})
        shown = "".join(part.text for part in found.content)
        trace.info["tools"] = sorted(listed)
        messages = [{"role": "user", "content": f"{data.prompt_text}\n\n{shown}"}]
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=30) as client:
            body = {"model": ctx.model, "messages": messages}
            (await client.post(f"{endpoint}/chat/completions", json=body)).raise_for_status()
        return vf.ProgramResult(0, "", "")


__all__ = ["Agent"]
