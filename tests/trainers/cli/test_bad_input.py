"""What a user may get wrong, each with a clear line before anything is sampled. Elsewhere: a base without a chat
template, and prompts longer than the window (test_runs_of_commands), without a pad token (test_lessons_learned),
without tools (test_rollouts), a full disk (test_training_runs), Ctrl-C amid rollouts and an update
(test_repeated_and_killed)."""

import json
from pathlib import Path

import pytest
from later import needs
from terminal import Terminal
from tiny_hf import tiny_model, tiny_tokenizer

pytestmark = [needs("torch", "transformers", "peft", "trl"), pytest.mark.filterwarnings("default")]
QUESTIONS = [{"question": f"How many hills has river {at % 20}?", "answer": "4"} for at in range(30)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = tiny_tokenizer(window=2048)
    tiny_model(words, window=2048).save_pretrained(tmp_path / "model")
    words.save_pretrained(tmp_path / "model")
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "rivers.md").write_text("# Rivers\n\nEvery river has 4 hills.\n")
    return tmp_path


def test_it_is_said_before_anything_is_sampled(folder: Path) -> None:
    terminal = Terminal(folder)
    own = ["recipe=grpo", "model.name=model", "data.train=questions.jsonl", 'settings.docs=["docs"]', "out=run"]
    fits, longer = "rollouts.window=2048", "rollouts.window is 16,384 tokens, but the model takes only 2,048"
    for command, given, code, line in (
        ("grpo", [fits, "reward.judge=m", "reward.judge_url=http://127.0.0.1:9/v1"], 3, "the judge cannot be reached"),
        ("grpo", [], 2, f"{longer}\n  set rollouts.window to at most 2048, or take another model"),
        ("sft", [], 2, longer),
        ("doctor", [], 1, longer),
        ("doctor", [fits], 0, "30 questions, 8 for each update; 10 duplicates"),
        ("grpo", ['train.report_to=["wandbs"]'], 2, "unknown reporter 'wandbs'"),
    ):
        assert terminal.train(command, *own, *given) == code, terminal.err
        assert line in terminal.out + terminal.err
        assert not (folder / "run").exists()
