"""What the Trainer is given: every argument comes from the configuration, or is fixed for a reason."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from hira.trainers.configuration import load_configuration  # noqa: E402
from hira.trainers.grpo import arguments_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
GIVEN = {
    "train.steps": 7,
    "train.lr": 0.25,
    "train.schedule": "linear",
    "train.warmup": 3,
    "train.weight_decay": 0.125,
    "train.max_grad_norm": 0.5,
    "train.checkpointing": "false",
    "train.save_every": 5,
    "train.keep": 4,
    "seed": 11,
}


def test_every_argument_of_the_trainer(tmp_path: Path) -> None:
    overrides = [f"{name}={value}" for name, value in GIVEN.items()]
    made = arguments_of(load_configuration(None, ["model.name=m", *overrides]), tmp_path)
    accelerated = torch.cuda.is_available()
    expected = {
        "output_dir": str(tmp_path),
        "max_steps": 7,
        "learning_rate": 0.25,
        "weight_decay": 0.125,
        "warmup_steps": 3,
        "max_grad_norm": 0.5,
        "save_steps": 5,
        "save_total_limit": 4,
        "seed": 11,
        "data_seed": 11,
        "per_device_train_batch_size": 1,  # a placeholder: `collect` decides
        "gradient_accumulation_steps": 1,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,  # a loss that is not a number must be seen
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "dataloader_pin_memory": False,
        "bf16": accelerated,
        "use_cpu": not accelerated,
    }
    assert {name: getattr(made, name) for name in expected} == expected
    assert (str(made.lr_scheduler_type.value), str(made.save_strategy.value)) == ("linear", "steps")
    assert made.report_to == []


def test_reports_and_checkpointing_are_passed_on(tmp_path: Path) -> None:
    for checkpointing in (True, False):
        given = ["model.name=m", f"train.checkpointing={str(checkpointing).lower()}"]
        assert arguments_of(load_configuration(None, given), tmp_path).activation_checkpointing is checkpointing
