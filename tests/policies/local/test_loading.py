"""`hf:NAME`: a model of this process by its folder, shared by the roles, with adapters of their own."""

import warnings
from pathlib import Path

import pytest
from later import later, needs
from tiny_hf import tiny_model, tiny_tokenizer, with_adapters

from hira.core.errors import HiraError, UsageError
from hira.core.messages import user
from hira.core.policy import Completion, Request, Sampling, counting
from hira.core.tokens import count
from hira.policies import open_policy
from hira.policies.local import LocalPolicy
from hira.policies.local.loading import OpenedLocally
from hira.policies.local.template import Template
from hira.runtime.endpoints import find_model
from hira.runtime.factory import configure_roles
from hira.runtime.settings import RoleSettings, Settings

transformers = later("transformers")
BatchingEngine = later("hira.policies.local.batching:BatchingEngine")
pytestmark = [
    needs("torch", "transformers", "peft"),
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),
]
ASKED = Request((user("Question?"),), Sampling(0.0, max_tokens=12), conversation="planner")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a base, and the adapters `planner` and `worker` of it."""
    folder = tmp_path_factory.mktemp("saved")
    tokenizer = tiny_tokenizer(window=8192)
    model = tiny_model(tokenizer, window=8192)
    tokenizer.save_pretrained(folder / "base")
    model.save_pretrained(folder / "base")
    model.name_or_path = str(folder / "base")
    with_adapters(model, "planner", "worker").save_pretrained(folder)
    return folder


async def told(model: str, adapter: str = "") -> Completion:
    policy = open_policy(model, adapter=adapter)
    try:
        return await policy.complete(ASKED)
    finally:
        await policy.aclose()


async def test_a_base_and_its_adapters_each_say_something_else(saved: Path) -> None:
    base = await told(f"hf:{saved}/base")
    planner = await told(f"hf:{saved}/base", f"{saved}/planner")
    worker = await told(f"hf:{saved}/base", f"{saved}/worker")
    assert len({base.text, planner.text, worker.text}) == 3
    assert base.model == f"hf:{saved}/base"
    assert planner.model == f"hf:{saved}/base+{saved}/planner"
    assert (await told(f"hf:{saved}/planner")).text == planner.text, "a folder of an adapter names its base"


async def test_roles_with_one_base_share_its_weights_and_keep_their_adapters(saved: Path) -> None:
    roles = {"planner": RoleSettings(adapter=f"{saved}/planner"), "coordinator": RoleSettings(adapter="")}
    settings = Settings(model=f"hf:{saved}/base", adapter=f"{saved}/worker", roles=roles)
    configs, own = configure_roles(await find_model(settings), {})
    said = {role: (await part.policy.complete(ASKED)).text for role, part in configs.items()}
    assert said == {
        "*": (await told(f"hf:{saved}/base", f"{saved}/worker")).text,
        "planner": (await told(f"hf:{saved}/base", f"{saved}/planner")).text,
        "coordinator": (await told(f"hf:{saved}/base")).text,
    }
    bases = {id(policy.policy._base) for policy in own if isinstance(policy.policy, OpenedLocally)}  # type: ignore[attr-defined]
    assert (len(own), len(bases)) == (3, 1)


async def test_a_model_of_this_process_counts_by_its_own_tokenizer(saved: Path) -> None:
    policy = open_policy(f"hf:{saved}/base", adapter=f"{saved}/planner")
    own = counting(policy)
    assert own is not None
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved / "base")
    text = "Who built the tower of Varn?"
    assert own.count(text) == len(tokenizer(text)["input_ids"]) > 2 * count(text)
    await policy.complete(ASKED)
    assert own.count("Who?") == 4
    await policy.aclose()
    template = Template(tiny_tokenizer())
    engine = BatchingEngine(tiny_model(tiny_tokenizer()), template)
    live = LocalPolicy("policy", template, engine, {"planner": "p", "worker": "w"})
    assert live.count("Who?") == 4  # in training as in a run, so that prompts are the same
    await live.aclose()
    assert counting(open_policy("offline")) is None


async def broken(model: str, adapter: str = "") -> HiraError:
    with pytest.raises(UsageError) as refused:
        await told(model, adapter)
    return refused.value


async def test_what_cannot_be_loaded_is_told_with_a_way_out(saved: Path, tmp_path: Path) -> None:
    assert "does not name a model" in str(await broken("hf:"))
    missing = await broken(f"hf:{tmp_path}/nothing/here")
    assert missing.what == f"there is no folder '{tmp_path}/nothing/here'"
    assert "config.json" in missing.fix
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text("{")
    assert "cannot be loaded" in (await broken(f"hf:{tmp_path}/half")).what
    assert "cannot be loaded" in (await broken(f"hf:{saved}/base", f"{tmp_path}/half")).what
    tiny_tokenizer(None).save_pretrained(tmp_path / "untold")
    tiny_model(tiny_tokenizer()).save_pretrained(tmp_path / "untold")
    assert "has no chat template" in (await broken(f"hf:{tmp_path}/untold")).what


async def test_an_adapter_of_another_base_is_refused_with_the_base_that_it_belongs_to(
    saved: Path, tmp_path: Path
) -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    wider = transformers.AutoConfig.from_pretrained(saved / "base")
    wider.hidden_size, wider.intermediate_size = 2 * wider.hidden_size, 2 * wider.intermediate_size
    transformers.AutoModelForCausalLM.from_config(wider).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="does not fit the model") as refused:
        await told(f"hf:{tmp_path}", f"{saved}/planner")
    assert refused.value.fix == f"use it with the model it was trained on: {saved}/base"


async def test_an_adapter_of_a_model_elsewhere_is_refused() -> None:
    for settings in (
        Settings(model="offline", adapter="run"),
        Settings(model="hf:base", roles={"planner": RoleSettings(model="offline", adapter="run")}),
    ):
        with pytest.raises(UsageError, match="adapter") as refused:
            await find_model(settings, ())
        assert "hf:FOLDER" in refused.value.fix
    await find_model(Settings(model="offline", adapter="run", roles={"planner": RoleSettings(model="hf:base")}), ())


@pytest.mark.filterwarnings("default")
async def test_old_names_that_peft_still_calls_are_not_the_persons_warning(saved: Path) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        await told(f"hf:{saved}/base", f"{saved}/planner")
    assert not [str(one.message) for one in heard if issubclass(one.category, FutureWarning)]


def test_a_machine_without_memory_is_no_wrong_name_of_a_model():
    from hira.policies.local.loading import try_loading

    def read():
        raise MemoryError

    with pytest.raises(HiraError, match="the machine is at a limit: no memory is left") as raised:
        try_loading("Qwen/x", read)
    assert not isinstance(raised.value, UsageError)
