"""A policy call as the journal stores it: the request by what is new in it, the completion whole."""

from collections.abc import Mapping
from typing import Any

from hira.core.messages import ToolCall
from hira.core.policy import Completion, Request, Sampling, Tokens, Usage

_SAMPLED = tuple(Sampling.__dataclass_fields__)


def recorded_request(model: str, request: Request, kept: int) -> dict[str, Any]:
    """What is stored of a request that shares its first `kept` messages with its conversation's previous one."""
    added = [{**message.wire, "prompt": message.prompt} for message in request.messages[kept:]]
    sampling = {name: value for name in _SAMPLED if (value := getattr(request.sampling, name)) is not None}
    return {"model": model, "kept": kept, "added": added, "sampling": sampling, "stop": request.stop}


def dump_completion(completion: Completion) -> dict[str, Any]:
    """The completion as JSON values. Written out, because `asdict` walks through every token id."""
    tokens = completion.tokens
    return {
        "text": completion.text,
        "reasoning": completion.reasoning,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in completion.calls],
        "finish": completion.finish,
        "stop": completion.stop,
        "usage": completion.usage.record,
        "model": completion.model,
        "tokens": tokens and {"prompt": tokens.prompt, "sampled": tokens.sampled, "logprobs": tokens.logprobs},
        "notes": completion.notes,
    }


def completion_of(record: Mapping[str, Any]) -> Completion:
    tokens = record["tokens"]
    return Completion(
        record["text"],
        record["reasoning"],
        tuple(ToolCall(**call) for call in record["calls"]),
        record["finish"],
        record["stop"],
        Usage(**record["usage"]),
        record["model"],
        Tokens(tuple(tokens["prompt"]), tuple(tokens["sampled"]), tuple(tokens["logprobs"])) if tokens else None,
        tuple(record.get("notes", ())),
    )
