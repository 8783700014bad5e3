"""The passages that a run has read, as a finding of a run that ends without an answer."""

from hira.agents.run_context import Conversation
from hira.agents.trajectory import Finding, Subtask
from hira.core.messages import Filled
from hira.core.prompts import Prompt

READ = Prompt(__file__, "reports", "read")
SHOWN = 5
"""The most sources that are quoted."""
QUOTED = 200
"""Characters of a quotation."""


def quote_read(conversation: Conversation) -> None:
    """Unless there is another finding, quote the beginnings of the latest sources, so that a person can check them."""
    record = conversation.context.rollout
    if any(finding.ok for finding in record.findings):
        return
    read = [source for source in record.sources.read.values() if source.evidence.strip()][-SHOWN:]
    quotes = [f"“{_quote_beginning(source.evidence)}” [{source.id}]" for source in read]
    if quotes:
        text = str(READ.fill(quotes=Filled("\n".join(quotes))))
        record.findings.append(Finding(Subtask("1", record.question), conversation.trajectory.role, "", text))


def _quote_beginning(text: str) -> str:
    """The beginning of a text's first sentence in one line, not of its heading, without marks that would end a
    quotation."""
    lines = [line.strip() for line in text.splitlines() if len(line.split()) > 4]
    line = next((line for line in lines if line.endswith((".", "?", "!"))), (lines or text.strip().splitlines())[0])
    line = line.partition("”")[0].partition('"')[0].lstrip("#*->| ")
    return line if len(line) <= QUOTED else line[:QUOTED].rsplit(" ", 1)[0]
