"""Recorded runs that continue where they ended."""

import asyncio
from pathlib import Path

from hira.agents.approved import APPROVAL_OF_CALLS
from hira.agents.output_type import find_recorded_output
from hira.core.errors import UsageError
from hira.journal import Journal, StillGoing
from hira.journal.records import Entry
from hira.runtime.run import Run, SessionOwner
from hira.runtime.session import HANDED, OF_QUESTION, Session
from hira.runtime.trace.reading import read_earlier


def run_id_of(run: object) -> str:
    """Return the id of a run, from the id or from a `Run`. Raises `UsageError` for anything else."""
    run_id = getattr(run, "id", run)
    if not isinstance(run_id, str):
        what = f"`run` must be a run or the id of one, got {run!r:.80}"
        raise UsageError(what, fix='write run.id, answer.rollout.run or "last"')
    return run_id


async def resume_run(owner: SessionOwner, run: str | Run) -> Run:
    """Return a run that continues where the recorded one ended. hira repeats no completed call of a model; programs run
    again if later ones need their files or variables.

    Raises `UsageError` for a run that does not exist, that is still running, or that this session cannot continue.
    """
    run_id = run_id_of(run)
    session = await owner.open_session()
    journal = session.journal
    if journal is None:
        raise UsageError("no runs are recorded here", fix="record them: Hira(journal=True)")
    entry = await asyncio.to_thread(journal.entry, run_id)
    if entry.alive:
        fix = "wait until it ends, or stop that process"
        raise StillGoing(f"run {entry.id} is still running", where=f"in process {entry.pid}", fix=fix)
    if lacking := [name for name in entry.settings.get(HANDED, ()) if name not in session.handed]:
        raise UsageError(f"run {entry.id} used {', '.join(lacking)}, which this Hira does not have",
                         fix="give the same tools, experts, policies and workflow")  # fmt: skip
    docs = entry.settings.get("docs", [])
    if entry.settings.get(OF_QUESTION) and docs != [*map(str, session.settings.docs)]:
        what = f"run {entry.id} searched the documents that its question named: {', '.join(map(str, docs)) or 'none'}"
        raise UsageError(what, fix=f"give them: resume({entry.id!r}, docs=[…])")
    if entry.workflow not in ("", session.workflow.name):
        what = f"run {entry.id} used the workflow {entry.workflow!r}, not {session.workflow.name!r}"
        raise UsageError(what, fix=f"give it: Hira(workflow={entry.workflow!r})")
    return await continue_run(owner, session, journal, entry)


async def continue_run(owner: SessionOwner, session: Session, journal: Journal, entry: Entry) -> Run:
    """Claim the record of a run, and return the run that continues it."""
    earlier = await asyncio.to_thread(read_earlier, journal, entry)
    # a journal that a file names may have come with the folder, and so may the approvals in it: a person is asked again
    named = session.settings.origin("journal").endswith(".toml")
    log = await asyncio.to_thread(journal.resume, entry, without=APPROVAL_OF_CALLS if named else "")
    files = tuple(map(Path, entry.files))
    output = find_recorded_output(entry.settings)
    return Run(owner, entry.question, files, run=entry.id, log=log, past=entry, earlier=earlier, output=output)
