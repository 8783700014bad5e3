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


def test_every_prompt_of_the_package_is_read_by_a_module_beside_it() -> None:
    package = Path(__file__).parent.parent / "hira"
    for path in package.rglob("*.md"):
        if "mini" in path.parts:  # documents that questions are asked of
            continue
        modules = "".join(module.read_text(encoding="utf-8") for module in path.parent.glob("*.py"))
        assert f'"{path.stem}"' in modules, f"nobody sends {path.name}"
