"""Structured output: the model writes the answer as a value of the type that the caller names."""

import json
from typing import Any

from hira.agents.output_type import VALUE, OutputType, find_field_citations
from hira.agents.record import ask_for_record
from hira.agents.role import OUTPUT
from hira.agents.run_context import RunContext
from hira.core.errors import DialectError, EndpointError, Stop
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import clean, sanitize
from hira.policies.names import OFFLINE

FILL = Prompt(__file__, "output", "output_fill")
_SHOWN = 8
"""The number of fields that a notice names."""


async def fill_output(context: RunContext, output: OutputType) -> Any:
    """The value that the run's answer gives, asked for in one call and once more where it does not fit. Raises
    `DialectError`, `EndpointError` or `Stop` where no value was had."""
    record = context.rollout
    conversation = context.conversation(OUTPUT, temperature=0.0)
    if not output.schema.get("properties"):  # only the instructions say which fields are wanted
        conversation.instructions = context.options.instructions
    held = [citation for citation in record.citations if citation.verdict.holds and citation.quote]
    quotes = "\n".join(f"- {clean(citation.quote)}" for citation in held)
    prompt = FILL.fill(
        question=sanitize(record.question),
        answer=sanitize(record.answer),
        quotes=Filled(quotes or "-"),
        schema=Filled(json.dumps(output.schema, ensure_ascii=False)),
    )
    filled_record = await ask_for_record(
        conversation, user(prompt), output.reads, wrong=output.find_fault, schema=output.schema
    )
    return output.unwrap(filled_record)


async def settle_output(context: RunContext, output: OutputType) -> None:
    """Give the rollout its output, or the reason why it has none."""
    record = context.rollout
    if record.status not in ("answered", "unverified"):
        record.output_error = f"the answer has the status {record.status!r}"
        return
    if context.config_of(OUTPUT).policy.model == OFFLINE:
        record.output_error = "`offline` writes no values; name a model"
        return
    try:
        record.output = await fill_output(context, output)
        record.has_output = True
        cited = find_field_citations(record.output, list(record.citations))
        if bare := [path for path, citations in cited.items() if not citations]:
            where = "the output" if bare == [VALUE] else f"{', '.join(bare[:_SHOWN])} in the output"
            context.note(f"no supported claim contains the value of {where}: check it", important=True)
    except (DialectError, EndpointError, Stop) as error:
        record.output_error = f"the model wrote no value of the output type: {error.what}"
        context.note(record.output_error, important=True)
