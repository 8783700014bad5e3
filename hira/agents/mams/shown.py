"""The parts of the state as the three agents are shown them."""

from hira.agents.mams.state import Memory, Plan
from hira.messages import Filled
from hira.prompts import Prompt
from hira.untrusted import said

NOTHING = Prompt(__file__, "mams_nothing")


def memory(entries: Memory) -> Filled:
    return _or_nothing("\n".join(entry.line for entry in entries))


def plan(written: Plan) -> Filled:
    return _or_nothing(written.text)


def done(written: Plan) -> str:
    """The calls that were made; what tools said of them is data."""
    return "\n".join(written.done) or NOTHING.fill()


def report(written: str) -> Filled:
    return _or_nothing(written)


def _or_nothing(text: str) -> Filled:
    return said(text) if text.strip() else NOTHING.fill()
