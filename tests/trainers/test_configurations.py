"""The configurations for several GPUs are what accelerate reads: whole, and with no option that it does not know."""

import os
from argparse import Namespace
from typing import Any

import pytest
from later import later, needs

from hira.trainers.configurations import path_of

load_config_from_file = later("accelerate.commands.config.config_args:load_config_from_file")
_validate_launch_command = later("accelerate.commands.launch:_validate_launch_command")
launch_command_parser = later("accelerate.commands.launch:launch_command_parser")
FullyShardedDataParallelPlugin = later("accelerate.utils:FullyShardedDataParallelPlugin")
prepare_deepspeed_cmd_env = later("accelerate.utils.launch:prepare_deepspeed_cmd_env")
prepare_multi_gpu_env = later("accelerate.utils.launch:prepare_multi_gpu_env")
pytestmark = needs("accelerate")
KINDS = {"ddp": "MULTI_GPU", "zero2": "DEEPSPEED", "fsdp": "FSDP"}
ADDRESS = ["--main_process_port", "29999"]


def launched(name: str) -> Namespace:
    """What `accelerate launch` makes of the configuration, as `hira-train grpo --processes` calls it."""
    given = ["--config_file", str(path_of(name)), "--num_processes", "2", *ADDRESS, "-m", "hira.cli.training", "grpo"]
    args: Namespace = _validate_launch_command(launch_command_parser().parse_args(given))[0]
    return args


def test_a_configuration_for_each_way_is_shipped() -> None:
    assert {path.stem for path in path_of("ddp").parent.glob("*.yaml")} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_accelerate_reads_it(name: str) -> None:
    read = load_config_from_file(str(path_of(name)))
    assert read.distributed_type.value == KINDS[name]
    assert (read.mixed_precision, read.num_processes, read.num_machines) == ("bf16", 2, 1)


@pytest.mark.parametrize("name", KINDS)
def test_every_option_of_it_is_one_that_accelerate_knows(name: str) -> None:
    """accelerate takes options that it does not know without a word, so that a misspelt one would do nothing."""
    read = load_config_from_file(str(path_of(name)))
    known = vars(launch_command_parser().parse_args(["-m", "any"]))
    options = [*read.deepspeed_config, *read.fsdp_config]
    assert bool(options) == (name != "ddp")
    assert [one for one in options if one not in known] == []


def test_launching_chooses_the_way_that_the_name_says() -> None:
    chosen = {name: launched(name) for name in KINDS}
    assert {name: (one.multi_gpu, one.use_deepspeed, one.use_fsdp) for name, one in chosen.items()} == {
        "ddp": (True, False, False),
        "zero2": (False, True, False),
        "fsdp": (False, False, True),
    }
    assert {one.mixed_precision for one in chosen.values()} == {"bf16"}


def told_to_processes(args: Namespace, name: str) -> dict[str, Any]:
    args.deepspeed_fields_from_accelerate_config = ""  # as its launcher sets it
    return prepare_deepspeed_cmd_env(args)[1] if name == "zero2" else prepare_multi_gpu_env(args)


def test_deepspeed_is_told_to_divide_gradients_and_optimiser_states() -> None:
    told = told_to_processes(launched("zero2"), "zero2")
    assert told["ACCELERATE_USE_DEEPSPEED"] == "true"
    assert told["ACCELERATE_DEEPSPEED_ZERO_STAGE"] == "2"
    # the trainer makes one step of all micro-batches itself
    assert told["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"] == "1"


def test_fsdp_builds_the_plugin_that_divides_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    told = told_to_processes(launched("fsdp"), "fsdp")
    for key, value in told.items():
        if key.startswith("FSDP_") or key == "ACCELERATE_USE_FSDP":
            monkeypatch.setitem(os.environ, key, value)
    plugin = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 2
    assert plugin.reshard_after_forward is True
    assert plugin.cpu_ram_efficient_loading
    assert not plugin.activation_checkpointing
