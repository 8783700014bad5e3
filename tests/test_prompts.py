import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.errors import PromptError
from hira.core.messages import Filled
from hira.core.prompts import Prompt


@pytest.fixture
def greeting(tmp_path: Path) -> Prompt:
    (tmp_path / "greeting.md").write_text("Hello {{name}}, {{task}}\n", encoding="utf-8")
    return Prompt(str(tmp_path / "module.py"), "greeting")


@pytest.mark.parametrize("values", [{"name": "Ada"}, {"name": "Ada", "task": "x", "more": "y"}])
def test_a_missing_or_an_extra_value_is_an_error_that_names_it(greeting: Prompt, values: dict[str, str]) -> None:
    with pytest.raises(PromptError, match=r"task|more"):
        greeting.fill(**values)


def test_a_value_that_hira_did_not_write_forms_no_token(greeting: Prompt) -> None:
    token = "<|begin_call_subtask|>"
    assert token not in greeting.fill(name=token, task="x")
    assert token in greeting.fill(name=Filled(token), task="x")


def test_a_paragraph_keeps_the_empty_line_at_its_front(tmp_path: Path) -> None:
    (tmp_path / "more.md").write_text("\n\nMore:\n{{more}}\n\n", encoding="utf-8")
    assert Prompt(str(tmp_path / "module.py"), "more").fill(more="x") == "\n\nMore:\nx"


@given(st.text(), st.text())
def test_filling_is_one_pass(tmp_path_factory: pytest.TempPathFactory, name: str, task: str) -> None:
    folder = tmp_path_factory.mktemp("prompts")
    (folder / "both.md").write_text("[{{name}}|{{task}}]", encoding="utf-8")
    filled = Prompt(str(folder / "m.py"), "both").fill(name=Filled(name), task=Filled(task))
    assert filled == f"[{name}|{task}]"


PACKAGE = Path(__file__).parent.parent / "hira"
FILES = [path for path in PACKAGE.rglob("*.md") if "mini" not in path.parts]  # those are documents


def prompts_in(path: Path) -> list[Prompt]:
    """The prompts of a file: its sections, or all of it."""
    sections = re.findall(r"^## (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    modules = "".join(module.read_text(encoding="utf-8") for module in path.parent.glob("*.py"))
    named = [section for section in sections if f'"{path.stem}", "{section}")' in modules]
    return [Prompt(str(path), path.stem, section) for section in named] or [Prompt(str(path), path.stem)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_prompt_of_the_package_can_be_filled_and_is_sent_by_a_module_next_to_it(path: Path) -> None:
    modules = "".join(module.read_text(encoding="utf-8") for module in path.parent.glob("*.py"))
    for prompt in prompts_in(path):
        asked = f'"{path.stem}", "{prompt.section}")' if prompt.section else f'"{path.stem}")'
        assert asked in modules, f"nobody sends {path}"
        for value in ("", "something"):
            assert "{{" not in prompt.fill(**dict.fromkeys(prompt.slots, value))


def test_no_file_of_prompts_is_a_fragment_of_a_dozen_words() -> None:
    assert not [path.name for path in FILES if len(path.read_text(encoding="utf-8").split()) <= 12]


@pytest.fixture
def letter(tmp_path: Path) -> Prompt:
    text = (
        "Task: {{task}}\n{{#if notes}}\n\nNotes:\n{{notes}}\n{{else}}\n\nNo notes.\n{{/if}}\nEnd{{#if loud}}!{{/if}}\n"
    )
    (tmp_path / "letter.md").write_text(text, encoding="utf-8")
    return Prompt(str(tmp_path / "module.py"), "letter")


def test_a_part_is_shown_where_its_value_is_not_empty(letter: Prompt) -> None:
    assert letter.fill(task="x", notes="- a", loud=True) == "Task: x\n\nNotes:\n- a\nEnd!"
    assert letter.fill(task="x", notes="", loud=False) == "Task: x\n\nNo notes.\nEnd"


def test_a_value_that_looks_like_a_mark_of_a_prompt_stays_as_it_is(letter: Prompt) -> None:
    question = "What do {{answer}}, {{#if notes}} and {{/if}} mean?"
    assert question in letter.fill(task=Filled(question), notes="", loud=False)


def test_the_name_that_a_part_depends_on_needs_a_value_too(letter: Prompt) -> None:
    with pytest.raises(PromptError, match="loud"):
        letter.fill(task="x", notes="")


@pytest.mark.parametrize("text", ["{{#if a}}x", "x{{/if}}{{#if a}}", "{{else}}{{a}}"])
def test_parts_that_do_not_fit_together_are_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "torn.md").write_text(text, encoding="utf-8")
    with pytest.raises(PromptError, match="if"):
        Prompt(str(tmp_path / "module.py"), "torn").fill(a="x")


def test_a_section_of_a_file_is_a_prompt_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "remarks.md").write_text("## late\n\nToo late, {{who}}.\n\n## early\n\nToo early.\n", encoding="utf-8")
    late = Prompt(str(tmp_path / "module.py"), "remarks", "late")
    filled = late.fill(who="Ada")
    assert (filled.prompt, filled) == ("late", "Too late, Ada.")
    with pytest.raises(PromptError, match="no section 'never'"):
        Prompt(str(tmp_path / "module.py"), "remarks", "never").fill()
