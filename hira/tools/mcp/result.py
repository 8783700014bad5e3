"""What a server's tool returned, as an observation that can be cited."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hira.core.errors import ToolError
from hira.core.sanitize import clean, clip_title
from hira.core.tool import Observation, read_result
from hira.tools.addresses import LONGEST

if TYPE_CHECKING:
    from mcp_types import CallToolResult

# Characters that are kept of a result.
KEPT = 400_000
_FAULT = 1_000


def make_observation(server: str, tool: str, arguments: Mapping[str, Any], result: "CallToolResult") -> Observation:
    """The result's texts as one passage of a source; what is no text is told in words.

    Raises `ToolError`, with what the server said, if the server calls the result an error.
    """
    texts, told = _parts(result)
    text = "\n\n".join(texts)
    if result.is_error:
        raise ToolError(clean(text[: 4 * _FAULT])[:_FAULT] or "the server reports a failure without a reason")
    if len(text) > KEPT:
        told.append(f"Of {len(text):,} characters, the first {KEPT:,} were kept.")
        text = text[:KEPT]
    if not text:
        return Observation("\n".join(told) or "Done. The tool returned nothing.")
    seen = read_result(f"mcp:{server}/{tool}", f"{server}: {tool}", arguments, text)
    return replace(seen, text="\n".join(told))


def _parts(result: "CallToolResult") -> tuple[list[str], list[str]]:
    """The texts of a result, and in words what else it holds. Its structure is a text where it has no other."""
    from mcp_types import TextResourceContents

    texts: list[str] = []
    told: list[str] = []
    for block in result.content:
        if block.type == "text":
            texts.append(block.text)
        elif block.type == "resource_link":
            told.append(f"A link to {clip_title(block.name)}: {str(block.uri)[:LONGEST]}")
        elif block.type == "resource":
            if isinstance(block.resource, TextResourceContents):
                texts.append(block.resource.text)
            else:
                told.append(_unseen("A file", block.resource.mime_type, len(block.resource.blob)))
        else:
            told.append(_unseen("A picture" if block.type == "image" else "A sound", block.mime_type, len(block.data)))
    texts = [text for text in texts if text.strip()]
    if not texts and result.structured_content:
        texts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    return texts, told


def _unseen(what: str, mime_type: str | None, encoded: int) -> str:
    return f"{what} ({mime_type or 'of unknown type'}, {encoded * 3 // 4:,} bytes), which cannot be shown here."
