"""`hira verify`: the citations of a recorded run, checked again against what the run had read."""

import argparse
import asyncio
import json
from dataclasses import replace

from hira.agents.entailment import entailed
from hira.casting import cast_of
from hira.cli import NO_EVIDENCE, OK
from hira.cli.output import named
from hira.cli.parser import flags
from hira.cli.progress import brief
from hira.cli.recorded import opened
from hira.cli.shell import Shell
from hira.connecting import connected
from hira.evidence import Citation, Verdict, accepted
from hira.settings import Settings, load
from hira.team import Team
from hira.trace import Reading, read

WIDTH = 110


def verify(args: argparse.Namespace, shell: Shell) -> int:
    with opened(args, shell) as journal:
        reading = read(journal, args.run)
    citations = reading.rollout.citations
    judged: list[Verdict] = []
    if args.model or args.base_url or args.role:
        settings = load(flags(args), shell.environ, shell.folder, shell.home)
        judged = asyncio.run(judgements(reading, settings))
    if args.json:
        shell.say(json.dumps(_as_json(reading, judged), ensure_ascii=False, indent=2))
    elif not citations:
        shell.tell("hira: the answer cites nothing" if reading.entry.answer else "hira: the run has no answer")
    for at, citation in enumerate([] if args.json else citations):
        _show(reading, citation, judged[at] if judged else "", shell)
    verdicts = [by if by != "unchecked" else one.verdict for one, by in zip(citations, judged, strict=bool(judged))]
    held = [
        replace(one, verdict=verdict) for one, verdict in zip(citations, verdicts, strict=bool(judged))
    ] or citations
    return OK if accepted(held) else NO_EVIDENCE


async def judgements(reading: Reading, settings: Settings) -> list[Verdict]:
    """What a model says of each citation, in their order. One that fails leaves its citation unchecked."""
    cast, own = cast_of(await connected(settings), {})
    team = Team(cast)
    sources = reading.rollout.sources.read
    try:
        return list(
            await asyncio.gather(
                *(
                    entailed(team.conversation("judge", str(at)), one.claim, sources[one.source], one.quote)
                    for at, one in enumerate(reading.rollout.citations, 1)
                )
            )
        )
    finally:
        for policy in own:
            await policy.aclose()


def _show(reading: Reading, citation: Citation, judged: str, shell: Shell) -> None:
    source = reading.rollout.sources.read[citation.source]
    by_model = f" · by the model: {judged}" if judged else ""
    shell.say(f"{citation.verdict:<12}  {named(source)}{by_model}")
    shell.say(f"              {brief(citation.claim, WIDTH)}")
    if citation.quote:
        shell.say(f"              “{brief(citation.quote, WIDTH)}”")


def _as_json(reading: Reading, judged: list[Verdict]) -> dict[str, object]:
    sources = reading.rollout.sources.read
    return {
        "run_id": reading.entry.id,
        "question": reading.entry.question,
        "citations": [
            {
                "id": one.source,
                "source": sources[one.source].location,
                "claim": one.claim,
                "quote": one.quote,
                "verdict": one.verdict,
                **({"by_model": judged[at]} if judged else {}),
            }
            for at, one in enumerate(reading.rollout.citations)
        ],
    }
