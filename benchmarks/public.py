"""Public questions, asked of every workflow with a real model, beside a call by hand and other agent libraries.

    python benchmarks/public.py MODEL [--base-url U] --sets multihop,squad,company --systems plain,rag,react,hira,auto
        [--questions FILE --passages FILE] [--squad FILE] [--company FOLDER] [--half held|seen] [--limit N]
        [--max-cost 5] [--peers VENV_PYTHON] [--out FILE] [--write]

A system may have a setting, or an option of its workflow: `rag:evidence=20`, `matpo:brief=1`.
MODEL is a GGUF file, which llama.cpp serves on one thread, or a model of the endpoint --base-url. The sets are read
from files that you have: `multihop` from JSON Lines of questions (id, question, answer, aliases) and of passages
(title, text), `squad` from dev-v2.0.json of SQuAD 2.0, `company` from the folder `internal_docs` of gpt-researcher's
benchmark of private documents; `held` and `mini` are hira's own. Before the first question the command prints the
largest possible number of calls, tokens and dollars. OUT is JSON Lines, one line for each system and question: a
question that OUT holds is not asked again, so that the command may be stopped and run again. While the endpoint is
away, the command waits for it. --write writes benchmarks/results/public.md. A key is read from OPENAI_API_KEY.
"""

import argparse
import asyncio
import json
import os
import platform
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from real.sets import SETS, Question, QuestionSet, alternate_kinds, read_lines, read_set
from real.systems import PEERS, PLAIN, Ask, Outcome, is_reachable, open_peer, open_plain, open_workflow, serve_model
from rich.progress import Progress

from hira.cli.dry_run import compute_bound
from hira.evaluation.statistics import bootstrap, wilson
from hira.runtime.registry import make_workflow
from hira.runtime.settings import Settings
from hira.workflows import WORKFLOWS

RESULTS = Path(__file__).parent / "results" / "public.md"
AWAY, PAUSE = 2 * 3600.0, 20.0
"""How long the command waits for an endpoint that went away, and between two looks."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What all systems share: the endpoint, the file of answers and the limits."""

    settings: Settings
    out: Path
    model: str
    reply: int
    peers: str
    max_cost: float | None


@asynccontextmanager
async def open_system(name: str, documents: Path, bench: Bench) -> AsyncIterator[Ask]:
    name, _, setting = name.partition(":")
    key, _, value = setting.partition("=")
    given: dict[str, Any] = {"docs": (documents,)}
    if key in Settings.model_fields:
        given[key] = int(value)
    elif key:
        given["workflows"] = {name: {key: int(value)}}
    settings = bench.settings.model_copy(update=given)
    if name == PLAIN:
        opened = open_plain(settings, bench.reply)
    elif name in PEERS:
        opened = open_peer(name, bench.peers, settings, bench.reply)
    else:
        opened = open_workflow(name, settings)
    async with opened as ask:
        yield ask


async def answer_questions(chosen: QuestionSet, systems: Sequence[str], bench: Bench, progress: Progress) -> None:
    """Ask each system what the file does not hold yet, one question after the other."""
    for name in systems:
        done = {(row["set"], row["system"], row["id"]) for row in read_rows(bench.out) if row["model"] == bench.model}
        left = [question for question in chosen.questions if (chosen.name, name, question.id) not in done]
        task = progress.add_task(f"{chosen.name} {name}", total=len(left))
        async with open_system(name, chosen.documents, bench) as ask:
            for question in left:
                check_cost(bench)
                row = await answer_question(ask, question, bench)
                row |= {"set": chosen.name, "system": name, "model": bench.model}
                with bench.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                shown = f"{chosen.name} {name} {question.id} right={row['right']} accepted={row['accepted']}"
                progress.console.print(f"{shown} {row['seconds']} s {row['answer'][:70]!r}", markup=False)
                progress.advance(task)


async def answer_question(ask: Ask, question: Question, bench: Bench) -> Row:
    """Ask one question, again if the endpoint was away. Raises `SystemExit` if it stays away."""
    began = time.monotonic()
    while True:
        try:
            outcome = await ask(question.text)
        except OSError as error:
            outcome = Outcome("", error=str(error))
        except Exception as error:  # noqa: BLE001 - what ended the system's run is its result
            outcome = Outcome("", error=f"{type(error).__name__}: {error}"[:500])
        if not outcome.error or is_reachable(bench.settings.base_url or ""):
            break
        await wait_for(bench.settings.base_url or "")
        began = time.monotonic()
    row = asdict(outcome)
    return {
        "id": question.id, "answerable": bool(question.answers), "right": question.is_right(outcome.answer),
        "exact": question.is_exact(outcome.answer), "seconds": round(time.monotonic() - began, 1),
        **row.pop("more"), **row,
    }  # fmt: skip


async def wait_for(address: str) -> None:
    print(f"{address} does not answer: waiting for it")
    until = time.monotonic() + AWAY
    while not await asyncio.to_thread(is_reachable, address):
        if time.monotonic() > until:
            raise SystemExit(f"{address} stayed away for {AWAY / 3600:g} h: run the command again to go on")
        await asyncio.sleep(PAUSE)


def check_cost(bench: Bench) -> None:
    """Raise `SystemExit` once the answers have cost as much as they may."""
    spent = sum(row["cost"] or 0.0 for row in read_rows(bench.out))
    if bench.max_cost is not None and spent >= bench.max_cost:
        raise SystemExit(f"--max-cost {bench.max_cost:g} is spent: run the command with a larger one to go on")


def read_rows(path: Path) -> list[Row]:
    return list(read_lines(path)) if path.exists() else []


def print_bound(sets: Sequence[QuestionSet], systems: Sequence[str], settings: Settings) -> None:
    """Print the largest possible number of calls, tokens and dollars of hira's workflows."""
    asked = sum(len(chosen.questions) for chosen in sets)
    for name in (name for name in systems if name in WORKFLOWS):
        chosen = settings.model_copy(update={"workflow": name, "docs": (sets[0].documents,)})
        _, total = compute_bound(make_workflow(chosen), chosen)
        cost = "an unknown price" if total.cost is None else f"{total.cost * asked:.2f} US dollars"
        print(
            f"{name}: {asked} questions, at most {total.calls * asked:,} calls, {total.tokens * asked:,} tokens, {cost}"
        )


def format_share(right: int, total: int) -> str:
    return f"{right} of {total}" if total else "–"


def format_row(rows: Sequence[Row]) -> list[str]:
    """Format a system's figures on one set; tokens, calls and seconds are medians a question."""
    answerable = [row for row in rows if row["answerable"]]
    right = [row for row in answerable if row["right"]]
    judged = rows[0]["accepted"] is not None
    accepted = [row for row in rows if row["accepted"]]
    others = [row for row in rows if not row["answerable"]]
    share = wilson(len(right), len(answerable))
    return [
        f"{len(rows)}",
        format_share(sum(row["exact"] for row in answerable), len(answerable)),
        f"{format_share(len(right), len(answerable))} ({share.low:.0%}–{share.high:.0%})",
        format_share(sum(row["right"] for row in accepted), len(accepted)) if judged else "–",
        format_share(sum(row["accepted"] for row in right), len(right)) if judged else "–",
        format_share(sum(not row["accepted"] for row in others), len(others)) if judged else "–",
        f"{median(row['tokens'] for row in rows):,.0f}",
        f"{median(row['calls'] for row in rows):g}",
        f"{median(row['seconds'] for row in rows):.0f}",
        format_share(sum(bool(row["error"]) for row in rows), len(rows)),
    ]


def format_difference(rows: Sequence[Row], system: str, other: str) -> list[str]:
    """Format the difference of two systems over the questions that both were asked."""
    by_id = {name: {(row["set"], row["id"]): row for row in rows if row["system"] == name} for name in (system, other)}
    shared = [key for key in by_id[system] if key in by_id[other] and by_id[system][key]["answerable"]]
    if not shared:
        return []
    gains = [float(by_id[system][key]["right"]) - by_id[other][key]["right"] for key in shared]
    gain = bootstrap(gains)
    tokens = fmean(by_id[system][key]["tokens"] for key in shared) / max(
        1.0, fmean(by_id[other][key]["tokens"] for key in shared)
    )
    return [
        f"{system} − {other}",
        f"{len(shared)}",
        f"{gain.value:+.0%} ({gain.low:+.0%} to {gain.high:+.0%})",
        f"{tokens:.2f}",
    ]


HEADS = (
    "set", "system", "asked", "exact", "contains (95 %)", "accepted that are right", "right that are accepted",
    "unanswerable not accepted", "tokens", "calls", "seconds", "failed",
)  # fmt: skip


def format_page(rows: Sequence[Row], wanted: int) -> str:
    models = list(dict.fromkeys(row["model"] for row in rows))
    parts = []
    for model in models:
        mine = [row for row in rows if row["model"] == model]
        groups = {(row["set"], row["system"]): [] for row in mine}
        for row in mine:
            groups[row["set"], row["system"]].append(row)
        lines = [f"| {' | '.join((*key, *format_row(group)))} |" for key, group in sorted(groups.items())]
        pairs = [format_difference(mine, "auto", other) for other in (PLAIN, "rag", "hira", "react")]
        parts.append(f"## {model}\n\n| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}\n" + "\n".join(lines))
        if paired := [f"| {' | '.join(pair)} |" for pair in pairs if pair]:
            heads = "difference|questions of all sets|containment (95 %)|tokens, ratio"
            parts.append(f"| {heads.replace('|', ' | ')} |\n|---|---|---|---|\n" + "\n".join(paired))
    missing = wanted - len(rows)
    partial = f"**Partial: {missing} answers are missing.** " if missing > 0 else ""
    return f"""# Public questions

{partial}Made by `python benchmarks/public.py MODEL …`, see its help: Python {platform.python_version()}, \
{platform.machine()}. Each system is asked the same questions, temperature 0, over the same documents with hira's
search. `plain` is one chat call written by hand with the passages of one search; other libraries have that search as
a tool. The questions are of the half of each set that was not looked at while hira was changed.

`contains` counts answers that hold a known answer, with Wilson's interval; an answer with an outdated value is wrong.
`accepted` means status `answered`, exit code 0. Someone who trusts that word loses by an accepted wrong answer; a right
answer that is not accepted costs them a look at the sources, which are shown. Tokens, calls and seconds are medians a
question. Seconds were measured on a busy machine and only compare within the table.

{chr(10).join(f"{part}{chr(10)}" for part in parts)}"""


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--base-url", default="")
    parser.add_argument("--sets", default="held", help=", ".join(SETS))
    parser.add_argument("--systems", default="plain,rag,react,hira,auto")
    parser.add_argument("--half", choices=["held", "seen"], default="held")
    parser.add_argument("--limit", type=int, default=24, help="questions of each set")
    parser.add_argument("--max-cost", type=float)
    parser.add_argument("--reply", type=int, default=400, metavar="TOKENS", help="the longest reply")
    parser.add_argument("--peers", default="", metavar="VENV_PYTHON")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", type=Path, default=Path("public-documents"), help="where documents are written")
    parser.add_argument("--write", action="store_true")
    for name in ("questions", "passages", "squad", "company"):
        parser.add_argument(f"--{name}", type=Path)
    options = parser.parse_args()
    systems = options.systems.split(",")
    if unknown := [name for name in systems if name.partition(":")[0] not in (PLAIN, *WORKFLOWS, *PEERS)]:
        parser.error(f"there is no system {unknown[0]!r}: {', '.join((PLAIN, *WORKFLOWS, *PEERS))}")
    if not options.peers and (libraries := [name for name in systems if name in PEERS]):
        parser.error(f"{libraries[0]} needs --peers, a Python of an environment that has it")
    sets = [read_set(name, vars(options), options.work) for name in options.sets.split(",")]
    sets = [
        replace(
            chosen,
            questions=alternate_kinds(
                one for one in chosen.questions if one.half == options.half or chosen.name not in ("multihop", "squad")
            )[: options.limit],
        )
        for chosen in sets
    ]
    with serve_model(options.model, options.base_url) as (address, name):
        model = Path(name).stem if not options.base_url else name
        settings = Settings(
            model=name, base_url=address, api_key=os.environ.get("OPENAI_API_KEY", ""), journal=None, temperature=0.0,
            max_reply_tokens=options.reply,
        )  # fmt: skip
        out = options.out or Path(f"public-{model}.jsonl")
        bench = Bench(settings, out, model, options.reply, options.peers, options.max_cost)
        print_bound(sets, systems, settings)
        try:
            with Progress() as progress:
                for chosen in sets:
                    await answer_questions(chosen, systems, bench, progress)
        finally:
            wanted = sum(len(chosen.questions) for chosen in sets) * len(systems)
            text = format_page(read_rows(out), wanted)
            print(text)
            if options.write:
                RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
