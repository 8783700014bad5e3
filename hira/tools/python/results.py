"""The result of a call of `python`: a computed number becomes a source that can be cited and checked."""

from pathlib import Path

from hira.core.prompts import Prompt
from hira.core.tool import Observation, Passage
from hira.evidence import OUTPUT, Source, inert
from hira.tools.python.sandbox import PythonSandbox

FIGURE = Prompt(__file__, "texts", "figure")

PICTURES = frozenset([".png", ".jpg", ".jpeg", ".gif", ".webp"])
MOST = 5
"""The most files of one call that become sources; of the others only the paths are shown."""
LARGEST = 100_000
"""The most bytes of a text file that are kept as its source."""
_SHOWN = 400
_TITLE = 80


async def run_code(sandbox: PythonSandbox, code: str) -> Observation:
    """Run the code in the session. A successful call is a source: the code, its result, and its files; the pictures and
    texts that it wrote are separate ones, the pictures first. A failed call is plain text: the model repairs its code.
    """
    outcome = await sandbox.run(code)
    # their shown paths, which later sessions can open
    names = {path: str(Path("..", sandbox.label, path.relative_to(sandbox.folder))) for path in outcome.files}
    written = "".join(f"\nwrote {name}" for name in names.values())
    if outcome.status != "ok":
        return Observation(inert(f"{outcome.text}{written}"), ok=False)
    first = next((line.strip("# ") for line in code.splitlines() if line.strip("# ")), "")
    shown = outcome.text or "(nothing was printed, and the last line has no value)"
    program = f"{code.strip()}{OUTPUT}"
    text = f"{program}{shown}{written}"
    place = f"python:{sandbox.label}.{outcome.number}"
    source = Source(place, first[:_TITLE] or "computation", text, "computation")
    paths = sorted(names, key=lambda path: path.suffix.lower() not in PICTURES)[:MOST]
    contents = await sandbox.contents(paths, LARGEST + 1)
    made = [_make_source(names[path], content, program, place) for path, content in contents.items()]
    return Observation(passages=(Passage(source, text), *filter(None, made)))


def _make_source(name: str, content: bytes, program: str, place: str) -> Passage | None:
    """Return a picture as media, with a text about its origin; a text as a computation; None for anything else.

    `name` is the shown path, `place` names the `program`, whose text precedes the file's.
    """
    title = Path(name).name
    if Path(name).suffix.lower() in PICTURES:
        told = FIGURE.fill(place=place, name=name)
        return Passage(Source(name, title, told, "media"), told)
    try:
        text = content[:LARGEST].decode("utf-8", "strict" if len(content) <= LARGEST else "ignore")
    except UnicodeDecodeError:
        return None
    if "\0" in text or not text.strip():
        return None
    rest = " …" if len(content) > LARGEST else ""
    head = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
    return Passage(Source(name, title, f"{program}{text}{rest}", "computation"), head)
