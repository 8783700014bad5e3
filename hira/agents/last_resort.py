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
    quotes: list[str] = []
    for source in read:  # the first sentence, without marks that would end a quotation; not the heading
        lines = [line.strip() for line in source.evidence.splitlines() if len(line.split()) > 4]
        first = (lines or source.evidence.strip().splitlines())[0]
        line = next((line for line in lines if line.endswith((".", "?", "!"))), first)
        line = line.partition("”")[0].partition('"')[0].lstrip("#*->| ")
        quotes.append(f"“{line if len(line) <= QUOTED else line[:QUOTED].rsplit(' ', 1)[0]}” [{source.id}]")
    if quotes:
        text = str(READ.fill(quotes=Filled("\n".join(quotes))))
        record.findings.append(Finding(Subtask("1", record.question), conversation.trajectory.role, "", text))
