"""`hira verify`: how the claims of a recorded run's answer were checked, or the same check made again."""

import argparse
import asyncio
import json
from collections.abc import Sequence

from hira.agents.run_context import RunContext
from hira.agents.verifier import ModelVerifier
from hira.cli import NO_EVIDENCE, OK
from hira.cli.output import format_source
from hira.cli.parser import collect_flags
from hira.cli.progress import brief
from hira.cli.runs import open_journal
from hira.cli.shell import Shell
from hira.evidence import Citation, is_accepted, is_refusal, verify_answer
from hira.evidence import verify as verify_lexically
from hira.runtime.answer import citations_as_json
from hira.runtime.endpoints import find_model
from hira.runtime.factory import cast_of
from hira.runtime.settings import Settings, load
from hira.runtime.trace import Reading, read

WIDTH = 110


def verify(args: argparse.Namespace, shell: Shell) -> int:
    with open_journal(args, shell) as journal:
        reading = read(journal, args.run)
    record = reading.rollout
    citations: Sequence[Citation] = record.citations
    if args.verify == "lexical":
        citations = verify_lexically(record.answer, record.sources, record.question)
    elif args.verify or args.model or args.base_url or args.role:
        settings = load(collect_flags(args), shell.environ, shell.folder, shell.home)
        citations, reasons = asyncio.run(verify_by_model(reading, settings))
        for reason in reasons:
            shell.tell(f"hira: not fully checked: {reason}")
    if args.json:
        shell.say(json.dumps(_as_json(reading, citations), ensure_ascii=False, indent=2))
    elif not citations:
        shell.tell("hira: the answer has no claims to check" if reading.entry.answer else "hira: the run has no answer")
    for citation in () if args.json else citations:
        _show(reading, citation, shell)
    return OK if is_accepted(citations) and not is_refusal(record.answer) else NO_EVIDENCE


async def verify_by_model(reading: Reading, settings: Settings) -> tuple[list[Citation], list[str]]:
    """The citations as a model judges every claim, and the reasons why some are unchecked."""
    cast, own = cast_of(await find_model(settings), {})
    record = reading.rollout
    try:
        verifier = ModelVerifier(RunContext(cast), every=True)
        return await verify_answer(record.answer, record.sources, record.question, verifier)
    finally:
        for policy in own:
            await policy.aclose()


def _show(reading: Reading, citation: Citation, shell: Shell) -> None:
    source = reading.rollout.sources.read[citation.source]
    how = ", attributed" if citation.attributed else ""
    shell.say(f"{citation.verdict:<12}  {format_source(source)} ({citation.by}{how})")
    shell.say(f"              {brief(citation.claim, WIDTH)}")
    if citation.quote:
        shell.say(f"              “{brief(citation.quote, WIDTH)}”")


def _as_json(reading: Reading, citations: Sequence[Citation]) -> dict[str, object]:
    return {
        "run_id": reading.entry.id,
        "question": reading.entry.question,
        "citations": citations_as_json(citations, reading.rollout.sources),
    }
