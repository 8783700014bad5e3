"""Supervised training: the order of the demonstrations, what of them is learned, and the trainer's arguments."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from later import later, needs

from hira.core.errors import HiraError, UsageError
from hira.runtime.settings import Settings
from hira.trainers.assembly import TrainingPlan
from hira.trainers.configuration import Configuration, load_configuration
from hira.trainers.recipes import MATPO
from hira.trainers.rows import Row
from hira.workflows import WORKFLOWS

torch = later("torch")
arguments_of, DemonstrationOrder = (
    later("hira.trainers.sft:arguments_of"),
    later("hira.trainers.sft:DemonstrationOrder"),
)
SftTrainer = later("hira.trainers.sft:SftTrainer")
drop_long = later("hira.trainers.sft:drop_long")
logprobs, model, row = later("tiny:logprobs"), later("tiny:model"), later("tiny:row")
tokenizer = later("tiny:tokenizer")
pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]


def configured(**values: Any) -> Configuration:
    given = {"model.name": "m", "model.bits": 32, "train.checkpointing": "false", **values}
    return load_configuration(None, [f"{name}={value}" for name, value in given.items()])


def rows(many: int, seed: int = 1) -> list[Row]:
    chance = random.Random(seed)
    return [row(chance, "planner", f"r{at}", "planner") for at in range(many)]


def test_the_rows_come_in_shuffled_passes_that_the_seed_repeats() -> None:
    given = rows(5)
    made = configured(**{"sft.steps": 6, "sft.batch": 4, "seed": 3})
    order = DemonstrationOrder(given, made)
    assert len(order) == 24
    names = [order[place].rollout for place in range(len(order))]
    passes = [names[start : start + 5] for start in range(0, 20, 5)]
    assert all(sorted(one) == ["r0", "r1", "r2", "r3", "r4"] for one in passes)
    assert len({tuple(one) for one in passes}) > 1
    again = DemonstrationOrder(given, made)
    assert [again[place].rollout for place in reversed(range(24))] == names[::-1], (
        "a place has its row, asked when ever"
    )
    other = DemonstrationOrder(given, made.model_copy(update={"seed": 4}))
    assert [other[place].rollout for place in range(24)] != names


def test_a_change_of_a_demonstration_hangs_on_its_place_alone() -> None:
    def change(one: Row, chance: random.Random) -> Row:
        return replace(one, conversation=f"{chance.random()}")

    made = configured(**{"sft.steps": 2, "sft.batch": 3})
    first, second = (DemonstrationOrder(rows(2), made, change) for _ in range(2))
    changed = [first[place].conversation for place in range(6)]
    assert len(set(changed)) == 6
    assert [second[place].conversation for place in (5, 0, 3)] == [changed[5], changed[0], changed[3]]


def test_the_loss_is_the_mean_over_the_tokens_that_the_role_wrote(tmp_path: Path) -> None:
    given = rows(3, seed=4)
    wrapped = model()
    made = configured(**{"sft.steps": 1, "sft.batch": 3})
    trainer = SftTrainer(wrapped, tokenizer(), DemonstrationOrder(given, made), made, tmp_path)
    batch = trainer.data_collator(given)
    assert batch["input_ids"].shape == batch["labels"].shape == (3, max(one.length for one in given))
    for place, one in enumerate(given):
        ids = [*one.prompt, *one.completion]
        mask = [*(0 for _ in one.prompt), *one.mask]
        assert batch["input_ids"][place, : one.length].tolist() == ids
        learned = [token if own else -100 for token, own in zip(ids, mask, strict=True)]
        assert batch["labels"][place].tolist() == learned + [-100] * (batch["labels"].shape[1] - one.length)
    with torch.no_grad():
        loss, output = trainer.compute_loss(wrapped, batch, return_outputs=True)
        told = [logprobs(wrapped, one)[torch.tensor(one.mask, dtype=torch.bool)] for one in given]
        assert float(loss) == pytest.approx(-float(torch.cat(told).mean()), rel=1e-5)
        assert float(trainer.compute_loss(wrapped, batch)) == float(loss)
        assert output.logits.shape[1] <= batch["labels"].shape[1] - 1
        for parameter in wrapped.parameters():
            parameter.fill_(float("nan"))
        with pytest.raises(HiraError, match="the loss is not a number in step 1"):
            trainer.compute_loss(wrapped, batch)


def test_steps_lower_the_loss_and_are_recorded(tmp_path: Path) -> None:
    from hira.trainers import records

    told: list[Any] = []
    wrapped = model()
    made = configured(**{"sft.steps": 40, "sft.batch": 4, "sft.lr": 0.05, "sft.save_every": 20})
    SftTrainer(wrapped, tokenizer(), DemonstrationOrder(rows(4), made), made, tmp_path, on_step=told.append).train()
    known = records.read(tmp_path / records.METRICS)
    assert known == told
    assert [one["step"] for one in known] == list(range(2, 41, 2)), "a line for each twentieth of the steps"
    assert known[-1]["loss"] < known[0]["loss"] / 2
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-40"], "the last one is kept"


def test_every_argument_of_supervised_training(tmp_path: Path) -> None:
    given = {"sft.steps": 300, "sft.batch": 3, "sft.lr": 0.25, "sft.warmup": 7, "sft.save_every": 50, "seed": 5}
    arguments = arguments_of(configured(**given), tmp_path)
    expected = {
        "max_steps": 300, "per_device_train_batch_size": 3, "learning_rate": 0.25, "warmup_steps": 7,
        "adam_beta2": 0.98, "logging_steps": 10, "save_steps": 50, "save_total_limit": 1, "seed": 5,
    }  # fmt: skip
    assert {name: getattr(arguments, name) for name in expected} == expected
    assert (str(arguments.lr_scheduler_type.value), str(arguments.save_strategy.value)) == ("linear", "steps")
    few = arguments_of(configured(**{"sft.steps": 5, "sft.save_every": 0}), tmp_path)
    assert (few.logging_steps, str(few.save_strategy.value)) == (1, "no")


def test_conversations_longer_than_the_window_are_left_out_and_an_error_if_all_are(tmp_path: Path) -> None:
    given = [
        replace(one, prompt=(1,) * (size - len(one.completion)))
        for one, size in zip(rows(3), (300, 301, 400), strict=True)
    ]
    told: list[str] = []

    def keep(window: int) -> list[int]:
        configuration = configured(**{"rollouts.window": window})
        plan = TrainingPlan(configuration, MATPO, Settings(), WORKFLOWS["matpo"](), (), (), tmp_path, began=0.0)
        return [one.length for one in drop_long(plan, given, told.append)]

    assert keep(400) == [300, 301, 400]
    assert told == []
    assert keep(300) == [300]
    assert told == ["left out: 2 conversations of more than 300 tokens"]
    with pytest.raises(UsageError, match="no conversation to learn from") as caught:
        keep(299)
    assert "or raise rollouts.window (299 tokens)" in caught.value.fix


def test_nothing_is_learned_from_no_conversation() -> None:
    with pytest.raises(UsageError, match="such as `hira runs export -o FILE` writes"):
        DemonstrationOrder([], load_configuration(None, ["model.name=m"]))
