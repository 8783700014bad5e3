"""`hira init`: a commented hira.toml from what is found here, and a question that tests it. No key is written."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hira.cli import NO_EVIDENCE, OK, PARTIAL, main
from hira.cli.doctor import examine, needs_exam
from hira.cli.shell import Shell
from hira.core.errors import NotTrusted, UsageError
from hira.policies.names import LOCAL_PORTS, OFFLINE
from hira.policies.probe import Probe, find_local, probe
from hira.runtime.settings import FILE, SEARCH_KEYS
from hira.runtime.settings.reading import find_own_file
from hira.tools.documents.walk import walk

FOLDERS = ("docs", "documents", "papers", "notes", "data")
KEYS = ("HIRA_API_KEY", "OPENAI_API_KEY")
BASE_URLS = {"HIRA_BASE_URL": "HIRA_API_KEY", "OPENAI_BASE_URL": "OPENAI_API_KEY"}
"""Variables that name an endpoint, each with that of its key."""
SOME = 5
HEAD = """# Settings of hira in this folder. Flags and HIRA_* variables override them; hira doctor shows what applies.
# Keys are not stored here: hira reads them from the environment."""
LIMITS = """# Limits of one run; a tenth is kept for the answer.
# max_time = 300     # seconds
# max_cost = 0.50    # US dollars"""


@dataclass(frozen=True, slots=True)
class SetupFindings:
    """The findings for a hira.toml. `keys` and `base_url` are names of variables: of those that contain keys, never the
    keys, and of the one that names an endpoint, which is the only one of the `servers` then."""

    servers: Sequence[Probe]
    keys: Sequence[str]
    model: str
    searches: Sequence[str]
    docs: Sequence[str]
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class InitOptions:
    docs: tuple[str, ...] = ()
    force: bool = False
    no_try: bool = False


def init(options: InitOptions, shell: Shell) -> int:
    path = shell.folder / FILE
    if path.is_symlink() or (path.exists() and not options.force):
        why = "is a symbolic link, which is not overwritten" if path.is_symlink() else "already exists"
        fix = "--force overwrites a file; hira doctor shows the settings"
        raise UsageError(f"{FILE} {why}", where=f"at {path}", fix=fix)
    docs = [shell.folder / Path(name).expanduser() for name in options.docs]
    walk(docs)  # raises for one that is not there
    _check_below(docs, shell)
    findings = asyncio.run(find_configuration(shell, options.docs))
    _write(path, format_settings(findings), force=options.force)
    shell.remark(f"wrote {path}")
    try:
        settings = shell.load_settings()
    except NotTrusted as error:  # the endpoint that was found and written just now
        error.allow()
        settings = shell.load_settings()
    if options.no_try or settings.model in ("", OFFLINE):
        shell.remark('hira doctor shows the settings; try them: hira ask "question"')
        return OK
    question = "What are the documents about?" if findings.docs else "What is 17 * 23?"
    shell.remark(f'testing it: hira ask "{question}"')
    code = main(["ask", question], shell)
    if code not in (OK, NO_EVIDENCE, PARTIAL):
        return code
    if needs_exam(settings):  # the model answered
        score = asyncio.run(examine(settings, shell.remark))
        shell.remark(f"the verifier's exam: {score.conclude() if score else 'not taken'}")
    return OK


def _check_below(docs: Sequence[Path], shell: Shell) -> None:
    """Raise `UsageError` for documents outside the folder: hira refuses a folder's hira.toml that names such, because
    somebody else may have written it."""
    for path in docs:
        if not path.resolve().is_relative_to(shell.folder.resolve()):
            what = f"the {FILE} of a folder may name only documents in that folder, not {path}"
            own = find_own_file(shell.environ, shell.home)
            fix = f"run hira init in a folder that holds them, or name them with --docs, HIRA_DOCS or docs in {own}"
            raise UsageError(what, where=f"in {shell.folder}; nothing was written", fix=fix)


async def find_configuration(shell: Shell, docs: Sequence[str]) -> SetupFindings:
    """Look at the environment, this machine and this folder. Only local servers, and the endpoint that a variable
    names, are asked for models."""
    environ = shell.environ
    base_url = next((name for name in BASE_URLS if environ.get(name)), "")
    servers: Sequence[Probe] = ()
    if not environ.get("HIRA_MODEL"):
        key = environ.get(BASE_URLS.get(base_url, ""), "")
        servers = [await probe(environ[base_url], key)] if base_url else await find_local(LOCAL_PORTS)
    keys = [name for name in KEYS if environ.get(name)]
    searches = [name for name, variable in SEARCH_KEYS.items() if environ.get(variable)]
    searches += ["searxng"] if environ.get("SEARXNG_BASE_URL") else []
    folders = [name for name in FOLDERS if (shell.folder / name).is_dir() and walk([shell.folder / name]).files]
    return SetupFindings(servers, keys, environ.get("HIRA_MODEL", ""), searches, docs or folders[:1], base_url)


def format_settings(findings: SetupFindings) -> str:
    """Return the file's text. Settings without a finding are comments, so that nobody has to look them up."""
    docs = '# Documents to search: files and folders.\n# docs = ["papers"]'
    if findings.docs:
        docs = "# Documents to search; without a search below, nothing else is searched.\n"
        docs += f"docs = {json.dumps(findings.docs, ensure_ascii=False)}"
    search = '# Web search; wikipedia needs no key, docs/tools.md lists the others.\n# search = "wikipedia"'
    if findings.searches:
        keys = ", ".join(SEARCH_KEYS.get(name, "SEARXNG_BASE_URL") for name in findings.searches)
        search = f"# Web searches, tried in order; their keys come from {keys}.\n"
        search += f"search = {json.dumps(', '.join(findings.searches))}"
    return "\n\n".join([HEAD, _model(findings), docs, search, LIMITS]) + "\n"


def _model(findings: SetupFindings) -> str:
    usable = [server for server in findings.servers if server.models]
    if findings.model:
        return f'# The model is set by HIRA_MODEL ({" ".join(findings.model.split())}).\n# model = "NAME"'
    if findings.base_url:
        names = [name for server in usable for name in server.models]
        if len(names) == 1:
            return f"# The only model of the endpoint that {findings.base_url} names.\nmodel = {json.dumps(names[0])}"
        has = f", which has {' '.join(', '.join(names[:SOME]).split())}" if names else ""
        return f'# The endpoint is set by {findings.base_url}{has}. Name its model:\n# model = "NAME"'
    if usable and not findings.keys:
        server = usable[0]
        others = [name for name in server.models if name != server.chat_model][:SOME]
        also = f"\n# It also has {' '.join(', '.join(others).split())}." if others else ""
        lines = f"model = {json.dumps(server.chat_model)}\nbase_url = {json.dumps(server.base_url)}"
        return f"# {server.server or 'A server'} on this machine.\n{lines}{also}"
    if findings.keys:
        return (
            f"# The key comes from {findings.keys[0]}. Name the model that it is for:\n"
            '# model = "NAME"\n# base_url = "https://…/v1"    # leave it out for OpenAI'
        )
    return (
        "# No key and no local server was found: `offline` answers with sentences from documents. To connect a model:\n"
        '# model = "NAME"\n# base_url = "http://127.0.0.1:8000/v1"'
    )


def _write(path: Path, text: str, *, force: bool) -> None:
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{FILE} cannot be written: {error.strerror}", where=f"at {path}") from None
