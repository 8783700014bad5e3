"""What each workflow takes for the same ten questions over the same documents, with `offline`.

    python benchmarks/workflows.py [--only hira,react] [--delay 0.05] [--write]

A model call is made to last `--delay` seconds, so that calls which do not wait for each other overlap. Printed are, a
question: model calls, prompt tokens, the share of each request that repeats its role's previous one exactly, and the
critical path: the longest chain of calls of which each began after the one before had ended. All but the last column is
the same in every run.
"""

import argparse
import asyncio
import json
import platform
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flow import prefix_share

from hira.answer import Answer, answer_of
from hira.casting import crew
from hira.policies.offline import OfflinePolicy
from hira.policy import Completion, Request, Watch
from hira.settings import Settings
from hira.team import Team
from hira.workflows import WORKFLOWS, rollout

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "tests" / "data" / "library"
# It has no search: the documents are attached to its questions.
ATTACHED = frozenset({"multimodal"})


@dataclass
class Slow:
    """The offline policy with calls that last a while; `depths` are how far each call stands in its chain."""

    delay: float
    policy: OfflinePolicy = field(default_factory=OfflinePolicy)
    ended: list[tuple[float, int]] = field(default_factory=list)

    @property
    def model(self) -> str:
        return self.policy.model

    @property
    def path(self) -> int:
        """The length of the longest chain so far."""
        return max((depth for _, depth in self.ended), default=0)

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        began = time.monotonic()
        depth = 1 + max((depth for end, depth in self.ended if end <= began), default=0)
        await asyncio.sleep(self.delay)
        completion = await self.policy.complete(request, watch)
        self.ended.append((time.monotonic(), depth))
        return completion

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True)
class Taken:
    """What one question took."""

    answer: Answer
    right: bool
    share: float | None
    path: int
    seconds: float


async def asked(name: str, questions: Mapping[str, str], delay: float) -> list[Taken]:
    """The questions one after the other, with one crew for all."""
    slow, workflow = Slow(delay), WORKFLOWS[name]()
    settings = Settings(model="offline", docs=(LIBRARY,), journal=None, cache=None)
    files = sorted(path for path in LIBRARY.rglob("*.*") if path.is_file()) if name in ATTACHED else []
    made, taken = await crew(settings, policies={"*": slow}, workflow=workflow), []
    for number, (question, expected) in enumerate(questions.items()):
        slow.ended.clear()
        began = time.perf_counter()
        async with made.team(str(number), question, files, ()) as team:
            answer = answer_of(await rollout(workflow, question, team), made.model)
            share = prefix_share(team) if _repeats(team) else None
        seconds = time.perf_counter() - began
        taken.append(Taken(answer, expected in answer.text, share, slow.path, seconds))
    await made.aclose()
    return taken


def _repeats(team: Team) -> bool:
    """Whether any role was asked more than once in a conversation."""
    return any(len(trajectory.turns) > 1 for trajectory in team.rollout.trajectories.values())


def row(name: str, taken: list[Taken]) -> str:
    """A workflow's line of the table; figures are means a question."""
    usage = [one.answer.rollout.usage for one in taken]
    shares = [one.share for one in taken if one.share is not None]
    cells = [
        f"`{name}`",
        f"{sum(one.right and one.answer.status == 'answered' for one in taken)}",
        f"{statistics.mean(one.calls for one in usage):.1f}",
        f"{statistics.mean(one.prompt_tokens for one in usage):,.0f}",
        f"{statistics.mean(shares):.3f}" if shares else "–",
        f"{statistics.mean(one.path for one in taken):.1f}",
        f"{statistics.mean(one.seconds for one in taken):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def page(rows: list[str], questions: int, delay: float) -> str:
    heads = [
        "workflow",
        f"answered, of {questions}",
        "calls",
        "prompt tokens",
        "prefix share",
        "path, calls",
        "seconds",
    ]
    table = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *rows]
    return f"""# Workflows side by side

Made by `python benchmarks/workflows.py --write`: Python {platform.python_version()}, {platform.machine()}. The same
{questions} questions over a small folder of documents, with `offline`, a model call lasting {delay:g} s. Figures are
means a question. `answered` counts right answers on evidence. The path is the longest chain of calls of which each
began after the one before had ended; the prefix share is what a request repeats exactly of its role's previous one.

`offline` reads and plans by rules, so this tells what each workflow asks for, and little of how well it would answer
with a model. `direct` reads nothing and so has no evidence; `multimodal` has no search, so the documents are attached
to its questions.

{chr(10).join(table)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(WORKFLOWS), metavar="A,B", help="these workflows")
    parser.add_argument("--delay", type=float, default=0.05, metavar="S", help="seconds a model call lasts (0.05)")
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results/workflows.md")
    arguments = parser.parse_args()
    lines = (ROOT / "benchmarks" / "data" / "library.jsonl").read_text(encoding="utf-8").splitlines()
    questions = {one["question"]: one["answer"] for one in map(json.loads, lines)}
    rows = [row(name, asyncio.run(asked(name, questions, arguments.delay))) for name in arguments.only.split(",")]
    told = page(rows, len(questions), arguments.delay)
    print(told)
    if arguments.write:
        Path(__file__).with_name("results").joinpath("workflows.md").write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
