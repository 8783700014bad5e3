"""hira through the API that users call: `Hira.ask` and `Hira.stream`, one agent, one tool, with the journal or not."""

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from measure import ANSWER, QUESTION, lookup

from hira import Hira, tool
from hira.core.events import TurnText


@asynccontextmanager
async def open_asker(base_url, _many, option):
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal.sqlite" if option == "journal" else False
        where = {"base_url": base_url, "api_key": "k"}
        async with Hira("m", **where, workflow="react", tools=[tool(lookup)], journal=journal) as hira:

            async def ask():
                answer = await hira.ask(QUESTION)
                assert answer.text == ANSWER, answer

            async def stream(tell):
                async for event in hira.stream(QUESTION):
                    if isinstance(event, TurnText):
                        tell(event.text)

            yield ask, stream
