"""A workflow at an endpoint that misbehaves: each run ends in an answer, or in an error that can be read."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from rows import DOZEN
from test_faults_end_to_end import DEADLINE, policy_at

from hira import Hira
from hira.core.policy import Completion, Request
from hira.runtime.run import Run
from hira.runtime.settings import Settings
from hira.testing import Endpoint

LIBRARY = Path(__file__).parent.parent / "data" / "library"


async def asked(base_url: str, workflow: str, question: str, files: Sequence[Path] = ()) -> Run:
    """A question over the library, to its end."""
    policy = policy_at(base_url)
    settings = Settings(docs=(LIBRARY,), journal=None, cache=None, workflow=workflow)
    async with Hira(settings=settings, policies={"*": policy}) as hira:
        run = hira.stream(question, files=files)
        async with asyncio.timeout(DEADLINE):
            await run.work()
        await policy.aclose()
    return run


async def endings(reply: Callable[[Request], str | Completion], ask: Callable[[str], Awaitable[Run]]) -> Counter[str]:
    """How the runs end, each fault with the first call, and with the second and all that follow."""
    ended: Counter[str] = Counter()
    for fault in DOZEN:
        for hit in (lambda number: number == 1, lambda number: number > 1):
            with Endpoint(reply, faults=lambda number, fault=fault, hit=hit: fault if hit(number) else "") as endpoint:
                answer = (await ask(endpoint.base_url)).answer
            ended[answer.status] += 1
            assert answer.text or answer.error, (fault, "an empty answer was accepted")
            assert len(answer.error.splitlines()) <= 3, (fault, answer.error)
            assert answer.status != "answered" or "supported" in {one.verdict for one in answer.citations}
    assert sum(ended.values()) == 2 * len(DOZEN)
    assert ended["failed"]
    return ended
