"""Supervised training with the tokenizers and the rows that people have."""

import random
from pathlib import Path

import tiny

from hira.trainers import records
from hira.trainers.configuration import Configuration, ModelConfig, SftConfig, TrainConfig
from hira.trainers.sft import LessonOrder, SftTrainer


def test_a_tokenizer_without_a_pad_token_is_taught_as_one_with_it(tmp_path: Path) -> None:
    chance = random.Random(0)
    rows = [tiny.row(chance, "worker", f"r{at}", "worker") for at in range(8)]
    whole = Configuration(
        model=ModelConfig(bits=32),
        train=TrainConfig(checkpointing=False),
        sft=SftConfig(steps=3, batch=4, save_every=0),
    )
    for name, words in (("with", tiny.tokenizer()), ("without", tiny.tokenizer())):
        if name == "without":
            words.pad_token = None
        SftTrainer(tiny.base(), words, LessonOrder(rows, whole), whole, tmp_path / name).train()
    learned = [[one["loss"] for one in records.read(tmp_path / name / records.METRICS)] for name in ("with", "without")]
    assert len({row.length for row in rows}) > 1
    assert learned[0] == learned[1]
    assert len(learned[0]) == 3
