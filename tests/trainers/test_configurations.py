"""The configurations for several GPUs are what accelerate reads: whole, and with no option that it does not know."""

import pytest
from later import later, needs

from hira.trainers.configurations import path_of

load_config_from_file = later("accelerate.commands.config.config_args:load_config_from_file")
pytestmark = needs("accelerate")
KINDS = {"ddp": "MULTI_GPU", "zero2": "DEEPSPEED"}


def test_a_configuration_for_each_way_is_shipped() -> None:
    assert {path.stem for path in path_of("ddp").parent.glob("*.yaml")} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_accelerate_reads_it(name: str) -> None:
    read = load_config_from_file(str(path_of(name)))
    assert read.distributed_type.value == KINDS[name]
    assert (read.mixed_precision, read.num_processes, read.num_machines) == ("bf16", 2, 1)
