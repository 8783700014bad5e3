"""`hira init`: a commented hira.toml from what is found here, and one question that tries it. No key is written."""

import argparse
import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hira.api import Hira
from hira.cli import OK, code_of, explain
from hira.cli.shell import Shell
from hira.core.errors import HiraError, NotTrusted, ToolError, UsageError
from hira.policies import LOCAL_PORTS
from hira.policies.names import OFFLINE
from hira.policies.probe import Probe, find_local
from hira.runtime.answer import Answer
from hira.runtime.settings import FILE, SEARCH_KEYS, Settings, load
from hira.runtime.settings.trust import check_harmless
from hira.tools.documents.reader import FileReader
from hira.tools.documents.walk import walk

FOLDERS = ("docs", "documents", "papers", "notes", "data")
KEYS = ("HIRA_API_KEY", "OPENAI_API_KEY")
SOME = 5
READ = 20_000
TRIED, LARGEST = 50, 1_000_000
"""Documents that are looked at for a question, and the bytes that they may have."""
NO_SUBJECT = """At In On For From To Of With Without By After Before Since If When While Where What Who Which How There
It They He She This That These Those Each Every Some All No Not As Your Our My"""
_SUBJECT = r"(?:(?:The|An?) )?[A-Za-z][\w'-]+(?: (?!(?:that|which|who|it|they|he|she|this|there)\b)[\w'-]+){0,3}?"
SENTENCE = re.compile(
    rf"^(?!(?:{'|'.join(NO_SUBJECT.split())})\b)(?=[A-Z])({_SUBJECT}) (is|was|are|were) ([^.?!\n]{{12,}}[.])",
    re.MULTILINE,
)
DEED = re.compile(r"^(?:[-*] )?[A-Z][\w'-]+ [A-Z][\w'-]+ ([a-z]+(?:s|ed)) ([^.?!,;\n]{8,60})[.]", re.MULTILINE)
ARTICLES = ("The", "A", "An")
KIND = re.compile(r"(?:an?|the) [a-z]")
FENCED = re.compile(r"^(```+|~~~+).*?^\1`*$", re.DOTALL | re.MULTILINE)
HEAD = """# Settings of hira in this folder. Flags and HIRA_* variables override them; hira doctor shows what applies.
# Keys are not stored here: hira reads them from the environment."""
LIMITS = """# Limits of one run; a tenth is kept for the answer.
# max_time = 300     # seconds
# max_cost = 0.50    # US dollars"""


@dataclass(frozen=True, slots=True)
class Found:
    """What a hira.toml can be made of. `keys` are the names of variables that hold keys, never the keys."""

    servers: tuple[Probe, ...]
    keys: tuple[str, ...]
    model: str
    searches: tuple[str, ...]
    docs: tuple[str, ...]


def init(args: argparse.Namespace, shell: Shell) -> int:
    path = shell.folder / FILE
    if path.is_symlink() or (path.exists() and not args.force):
        what = (
            f"{FILE} already exists"
            if not path.is_symlink()
            else f"{FILE} is a symbolic link, which is not overwritten"
        )
        raise UsageError(what, where=f"at {path}", fix="--force overwrites a file; hira doctor shows the settings")
    if args.docs:
        docs = [shell.folder / Path(name).expanduser() for name in args.docs]
        walk(docs)  # raises for one that is not there
        check_harmless({"docs": docs}, path)
    found = asyncio.run(look(shell, args.docs or ()))
    _write(path, format_settings(found), force=args.force)
    shell.remark(f"wrote {path}")
    try:
        settings = load({}, shell.environ, shell.folder, shell.home)
    except NotTrusted as error:  # the endpoint that was found and written just now
        error.allow()
        settings = load({}, shell.environ, shell.folder, shell.home)
    if args.no_try:
        return OK
    return _tried(settings, found, shell)


async def look(shell: Shell, docs: Sequence[str]) -> Found:
    """What the environment, this machine and this folder have. Nobody but local servers is asked for models."""
    servers = () if shell.environ.get("HIRA_MODEL") else tuple(await find_local(LOCAL_PORTS))
    keys = tuple(name for name in KEYS if shell.environ.get(name))
    searches = [name for name, variable in SEARCH_KEYS.items() if shell.environ.get(variable)]
    searches += ["searxng"] if shell.environ.get("SEARXNG_BASE_URL") else []
    named = tuple(docs) or tuple(name for name in FOLDERS if _readable(shell.folder / name))[:1]
    return Found(servers, keys, shell.environ.get("HIRA_MODEL", ""), tuple(searches), named)


def _readable(folder: Path) -> bool:
    return folder.is_dir() and bool(walk([folder]).files)


def format_settings(found: Found) -> str:
    """The file's text. What was not found stands in it as a comment, so that it need not be looked up."""
    return "\n\n".join([HEAD, _model(found), _docs(found.docs), _search(found.searches), LIMITS]) + "\n"


def _model(found: Found) -> str:
    usable = [one for one in found.servers if one.models]
    if found.model:
        return f'# The model is set by HIRA_MODEL ({_plain(found.model)}).\n# model = "NAME"'
    if usable and not found.keys:
        server = usable[0]
        model = next((name for name in server.models if "embed" not in name.lower()), server.models[0])
        others = [name for name in server.models if name != model][:SOME]
        also = f"\n# It also has {_plain(', '.join(others))}." if others else ""
        lines = f"model = {json.dumps(model)}\nbase_url = {json.dumps(server.base_url)}"
        return f"# {server.server or 'A server'} on this machine.\n{lines}{also}"
    if found.keys:
        return (
            f"# The key comes from {found.keys[0]}. Name the model that it is for:\n"
            '# model = "NAME"\n# base_url = "https://…/v1"    # leave it out for OpenAI'
        )
    return (
        "# No key and no local server was found: `offline` answers with sentences from documents. To connect a model:\n"
        '# model = "NAME"\n# base_url = "http://127.0.0.1:8000/v1"'
    )


def _docs(docs: Sequence[str]) -> str:
    if docs:
        told = "# Documents to search; without a search below, nothing else is searched."
        return f"{told}\ndocs = {json.dumps(list(docs), ensure_ascii=False)}"
    return '# Documents to search: files and folders.\n# docs = ["papers"]'


def _search(searches: Sequence[str]) -> str:
    if searches:
        line = f"search = {json.dumps(', '.join(searches))}"
        keys = ", ".join(SEARCH_KEYS.get(name, "SEARXNG_BASE_URL") for name in searches)
        return f"# Web searches, tried in order; their keys come from {keys}.\n{line}"
    return '# Web search; wikipedia needs no key, docs/tools.md lists the others.\n# search = "wikipedia"'


def _plain(text: str) -> str:
    return " ".join(text.split())


def _write(path: Path, text: str, *, force: bool) -> None:
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{FILE} cannot be written: {error.strerror}", where=f"at {path}") from None


def _tried(settings: Settings, found: Found, shell: Shell) -> int:
    """Ask a question, where there is something to answer from, and tell how it went. `offline` takes whole sentences,
    so it is asked until one of the questions is answered; a model is asked once, because that may cost."""
    questions = questions_for(settings, documents=bool(found.docs))
    if not questions:
        no_question = "not tested: no sentence of the documents gives a simple question; ask your own with hira ask"
        shell.remark(no_question if found.docs else "not tested: name documents (docs) or a model in it")
        return OK
    try:
        with Hira(settings=settings) as hira:
            for question in questions:
                shell.remark(f"testing it: hira ask {question!r}")
                answer = hira.ask_sync(question)
                if answer.status == "answered" or OFFLINE not in _models(answer):
                    break
    except HiraError as error:
        explain(error, shell)
        return code_of(error)
    seconds, by = answer.rollout.usage.seconds, ", ".join(_models(answer)) or "nobody"
    shell.remark(f"{answer.status.replace('_', ' ')}, by {by}, {seconds:.1f} s of model calls")
    shell.say(answer.text)
    if answer.status != "answered" and OFFLINE in _models(answer):
        shell.remark("no question was found that a whole sentence answers; ask your own with hira ask")
    return OK


def _models(answer: Answer) -> list[str]:
    turns = (turn for one in answer.rollout.trajectories.values() for turn in one.turns)
    return list(dict.fromkeys(turn.completion.model for turn in turns))


def questions_for(settings: Settings, *, documents: bool) -> list[str]:
    """Questions that the set-up should be able to answer, the likeliest first; none if there is nothing to answer
    from."""
    model = settings.model not in ("", OFFLINE)
    if not documents:
        return ["What is 17 * 23?"] if model else []
    files = walk(settings.docs, settings.exclude).files
    with FileReader() as reader:
        told = [one for path in islice(files.values(), TRIED) for one in _told_of(path, reader)]
    told.sort(key=lambda one: -one.worth)  # the first of those that are worth the same
    questions = list(dict.fromkeys(one.question for one in told))[:SOME]
    return questions or (["What are the documents about?"] if model and files else [])


@dataclass(frozen=True, slots=True)
class Told:
    """A question that a sentence answers; `worth` more if the sentence says what its subject is, and names it."""

    question: str
    worth: int


def _told_of(path: Path, reader: FileReader) -> Iterator[Told]:
    """What the sentences of a document say of a subject, and who does what; code blocks are none of its own words."""
    try:
        text = FENCED.sub("", reader.read(path, limit=LARGEST).text[:READ])
    except ToolError:  # it is told when the documents are searched
        return
    for found in SENTENCE.finditer(text):
        article, _, rest = found[1].partition(" ")
        named = article not in ARTICLES or rest != rest.lower()
        subject = f"{article.lower()} {rest}" if article in ARTICLES else found[1]
        kind = bool(KIND.match(found[3]))
        yield Told(f"What {found[2]} {subject}?", named + 2 * kind + (kind and article in ("A", "An")))
    for deed in DEED.finditer(text):
        yield Told(f"Who {deed[1]} {deed[2]}?", -1)
