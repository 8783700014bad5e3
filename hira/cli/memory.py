"""`hira memory`: the verified claims that `--memory` keeps."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hira.cli import OK
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.core.sanitize import clean
from hira.runtime.claim_memory import ClaimMemory, is_current
from hira.runtime.settings import MEMORY, find_kept_file

ALL = "all"


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    what: str = "list"
    ids: tuple[str, ...] = ()
    json: bool = False


def memory(options: MemoryOptions, shell: Shell) -> int:
    """List the claims, or forget some of them. Raises `UsageError` for a claim that is not there."""
    settings = shell.load_settings()
    file = settings.memory or find_kept_file(MEMORY, "on", shell.environ, shell.folder, shell.home)
    assert file is not None  # noqa: S101 - it names the user's own
    claims = ClaimMemory(file)
    if options.what == "forget":
        return _forget(options.ids, claims, shell)
    kept = claims.list() if file.is_file() else []
    for claim in kept:
        if options.json:
            shell.say(json.dumps(claim._asdict(), ensure_ascii=False))
            continue
        place = ", ".join(filter(None, (Path(claim.path).name, claim.place)))
        used = "" if is_current(claim) else " (not used: the document has changed or is gone)"
        shell.say(" ".join(clean(f"{claim.id}  {claim.date}  {claim.claim} — {place}{used}").split()))
    if not kept:
        shell.remark(f"nothing is remembered in {file}; hira ask --memory --docs PATH remembers")
    return OK


def _forget(ids: Sequence[str], claims: ClaimMemory, shell: Shell) -> int:
    if not claims.file.is_file():
        raise UsageError("nothing is remembered yet", where=f"at {claims.file}")
    if ids == (ALL,):
        count = claims.forget()
    else:
        known = {str(claim.id) for claim in claims.list()}
        if unknown := [number for number in ids if number not in known]:
            raise UsageError(f"no claim has the number {unknown[0]!r}", fix="hira memory list shows the numbers")
        count = claims.forget([int(number) for number in dict.fromkeys(ids)])
    shell.say(f"{count} {'claim is' if count == 1 else 'claims are'} forgotten")
    return OK
