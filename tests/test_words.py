"""Pages, messages, help texts and docstrings are in plain English: phrases that they avoid, each with the words to
use."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from hira import Hira

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SCRIPTS = sorted((ROOT / "hira").rglob("*.js"))
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|^ *>>> .*?$", re.MULTILINE | re.DOTALL)

INSTEAD = {
    r"\btold\b": "sees, gets, prints: name who reports what to whom",
    r"\bst(?:ands?|ood)\b": "is, means, follows",
    r"(?<!reasons )\bbehind\b": "after",
    r"\b(?:goes|go|went|gone|going) on\b": "continue, resume",
    r"\bby itself\b|\bby themselves\b": "alone, on its own, automatically",
    r"\bhand(?:s|ed)? on\b": "pass on",
    r"\b(?:to|for|from) who\b|\bnobody (?:watches|asked)\b": "name the reader or the caller",
    r"\b(?:is|are) no (?:merit|fault|error)s?\b": "is not a fault, does not count",
    r"\bbeside\b": "next to, compared with",
    r"\b(?:had again|to be had)\b": "reproduce, available",
    r"\bone's own\b": "your own",
    r"\bof (?:its|their) own\b": "its own, a separate",
    r"\bhangs? on\b": "depends on",
    r"\bkin\b": "and similar",
    r"\b(?:are|is) none\b": "name the limit",
    r"\bso many\b": "N",
    r"\bwhom\b": "who",
    r"\b(?:is|are|was|were) made\b": "creates, with an actor",
    r"\bto the letter\b": "exactly, strictly",
    r"\bwhat (?:is|was) known\b": "the results so far",
    r"\bwhat (?:was|were) [a-z]+(?:ed|ead|ound|aid|ade)\b": "name the thing",
    r"(?:^|[.:|] )(?:What|That|Whether) [a-z][^.?|]*\.": "a sentence with a subject",
    r"(?<!there )\bis no (?:call|claim|document|field|text|evidence|model|policy|fact|question)\b": "is not a",
}


def sentences(page: Path) -> str:
    """The text of a page without its code; of a script all of it."""
    text = page.read_text(encoding="utf-8")
    return text if page.suffix == ".js" else CODE.sub("`", text)


@pytest.mark.parametrize("page", [*PAGES, *SCRIPTS], ids=lambda page: page.stem)
def test_a_page_is_in_plain_english(page: Path) -> None:
    text = sentences(page)
    found = [
        f"{match[0][:80]!r}: write {instead}"
        for phrase, instead in INSTEAD.items()
        for match in re.finditer(phrase, text, re.MULTILINE)
    ]
    assert not found, f"{page.name}:\n" + "\n".join(found)


SAYS = re.compile(
    r"(?:Error|Refused|Interrupted|Down|TimedOut|Denied|Notice|[Nn]ote|_notice|remark|tell|explain|add_argument|add_parser|[Pp]arser)$"
)
"""The end of the name of a call that takes words for a person."""


@cache
def parse(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def words_for_people(module: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of each string in a call that raises, notes or helps; a value in it is `X`."""
    for call in ast.walk(parse(module)):
        if not isinstance(call, ast.Call) or not SAYS.search(ast.unparse(call.func)):
            continue
        for node in ast.walk(call):
            if isinstance(node, ast.JoinedStr):
                yield (
                    node.lineno,
                    "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in node.values),
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value


PACKAGES = sorted(
    one for one in (ROOT / "hira").iterdir() if (one / "__init__.py").is_file() and one.name != "evidence"
)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_messages_and_help_texts_are_in_plain_english(package: Path) -> None:
    found = [
        f"{module.relative_to(ROOT)}:{line} {text[:80]!r}: write {instead}"
        for module in sorted(package.rglob("*.py"))
        for line, text in words_for_people(module)
        for phrase, instead in INSTEAD.items()
        if re.search(phrase, text)
    ]
    assert not found, "\n".join(found)


ARGUMENTS = {"--file": "files", "--role": "roles"} | {
    f"--{field.name.replace('_', '-')}": field.name for field in fields(Hira) if field.init
}
LIBRARY = [one for one in PACKAGES if one.name not in ("cli", "server", "trainers", "evaluation", "testing")]


def strings(module: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of each string of several words that documents nothing."""
    documents = {node.value for node in ast.walk(parse(module)) if isinstance(node, ast.Expr)}
    for node in ast.walk(parse(module)):
        text = node.value if isinstance(node, ast.Constant) and node not in documents else None
        if isinstance(text, str) and " " in text:
            yield node.lineno, text


@pytest.mark.parametrize("package", LIBRARY, ids=lambda package: package.name)
def test_a_message_that_names_an_option_names_the_argument_of_hira_too(package: Path) -> None:
    found = [
        f"{module.relative_to(ROOT)}:{line} {text[:80]!r}: write {ARGUMENTS[option]}="
        for module in sorted(package.rglob("*.py"))
        if module.name != "compare.py"  # of a command alone
        for line, text in strings(module)
        for option in re.findall(r"--[a-z-]*[a-z]", re.sub(r"\bhira [a-z]+ .*", "", text))
        if option in ARGUMENTS and f"{ARGUMENTS[option]}=" not in text
    ]
    assert not found, "\n".join(found)


def docstrings(module: Path) -> Iterator[tuple[int, str]]:
    """The line and the text, without code, of each string that documents a module, class, function or constant; the
    models read those of tools, and not all of their prompts are in this style."""
    for node in ast.walk(parse(module)):
        body = getattr(node, "body", None)
        returns = getattr(node, "returns", None)
        is_tool = returns is not None and ast.unparse(returns) == "Observation"
        for one in body if isinstance(body, list) and not is_tool else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                yield one.lineno, CODE.sub("`", one.value.value)


@pytest.mark.parametrize("package", [*PACKAGES, ROOT / "hira" / "evidence"], ids=lambda package: package.name)
def test_docstrings_are_in_plain_english(package: Path) -> None:
    found = [
        f"{module.relative_to(ROOT)}:{line} {match[0][:80]!r}: write {instead}"
        for module in sorted(package.rglob("*.py"))
        for line, text in docstrings(module)
        for phrase, instead in INSTEAD.items()
        for match in re.finditer(phrase, text, re.MULTILINE)
    ]
    assert not found, "\n".join(found)


def test_the_words_of_an_error_are_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("raise UsageError(f'{n} at once are none', fix='go on')\n", encoding="utf-8")
    assert {text for _, text in words_for_people(module)} >= {"X at once are none", "go on"}


@pytest.mark.parametrize(
    "sentence",
    [
        "A file that cannot be read is told, with what would help.",
        "The answer stands in the rollout.",
        "A run that broke off goes on with the next call.",
        "What models wrote is shown as text.",
        "Every subtask has a process of its own.",
        "Hand a piece to who watches.",
        "Length is no merit.",
    ],
)
def test_the_old_style_is_found(sentence: str) -> None:
    assert any(re.search(phrase, sentence, re.MULTILINE) for phrase in INSTEAD)
