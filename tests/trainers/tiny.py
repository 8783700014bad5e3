"""A tiny model with LoRA adapters, rows for it, and the loss written out by hand."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from hira.trainers.batches import adapter_of
from hira.trainers.configuration import Configuration, ModelConfig, TrainConfig
from hira.trainers.credit import Credit
from hira.trainers.grpo import RoleTrainer
from hira.trainers.rows import Attempt, Collected, Credited, Group, Row
from hira.trainers.weights import activate, all_trainable

VOCABULARY = 40
torch.set_num_threads(1)


def tokenizer() -> PreTrainedTokenizerFast:
    words = {"<pad>": 0, "<eos>": 1} | {f"w{at}": at for at in range(2, VOCABULARY)}
    made = Tokenizer(models.WordLevel(words, unk_token="w2"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")


def base(seed: int = 0, **changed: Any) -> Any:
    """A base of 20,000 parameters; what is `changed` of its configuration is named."""
    torch.manual_seed(seed)
    own = {
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 256,
        "initializer_range": 0.3,
        "tie_word_embeddings": True,
    }
    config = Qwen2Config(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        pad_token_id=0,
        eos_token_id=1,
        **(own | changed),
    )
    return Qwen2ForCausalLM(config)


def adapted(base: Any, adapters: Sequence[str], *, rank: int = 2, fresh: bool = True) -> Any:
    """The base with these adapters; `fresh` ones begin as ordinary LoRA does, with no effect."""
    lora = LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules="all-linear", init_lora_weights=fresh, task_type="CAUSAL_LM"
    )
    wrapped = get_peft_model(base, lora, adapter_name=adapters[0])
    for name in adapters[1:]:
        wrapped.add_adapter(name, lora)
    return wrapped


def model(adapters: Sequence[str] = ("default",), *, fresh: bool = False, seed: int = 0) -> Any:
    """A whole one, whose adapters have an effect unless they are `fresh`."""
    return adapted(base(seed), adapters, fresh=fresh)


def row(chance: random.Random, role: str, rollout: str, conversation: str) -> Row:
    """A ragged row: a prompt of 1 to 6 ids, then stretches that were sampled and stretches of tools."""
    prompt = tuple(chance.randrange(2, VOCABULARY) for _ in range(chance.randint(1, 6)))
    mask: list[int] = []
    for turn in range(chance.randint(1, 3)):
        mask += [0] * (chance.randint(1, 4) if turn else 0) + [1] * chance.randint(1, 6)
    ids = tuple(chance.randrange(2, VOCABULARY) for _ in mask)
    logprobs = tuple(chance.uniform(-4, -2) * one for one in mask)
    return Row("q", rollout, role, conversation, prompt, ids, tuple(mask), logprobs)


def groups(seed: int, *, planner: str = "planner", worker: str = "worker") -> tuple[Group, ...]:
    """Groups with everything that may go wrong: a dead one, one without delegation, a singleton, failures."""
    chance = random.Random(seed)
    prompts: dict[str, tuple[int, ...]] = {}

    def attempt(problem: str, number: int, reward: float | None, workers: int, status: str = "ok") -> Attempt:
        name = f"{problem}/{number}"
        first = row(chance, planner, name, planner)
        shared = prompts.setdefault(problem, first.prompt)
        first = Row(problem, name, planner, planner, shared, first.completion, first.mask, first.logprobs)
        others = [row(chance, worker, name, f"{at}/{worker}") for at in range(workers)]
        return Attempt(number, (first, *others), reward, status)  # type: ignore[arg-type]

    return (
        Group("mixed", tuple(attempt("mixed", at, float(at % 2), at) for at in range(4))),
        Group("graded", tuple(attempt("graded", at, at / 3, 2) for at in range(3))),
        Group("dead", tuple(attempt("dead", at, 1.0, 2) for at in range(3))),
        Group("alone", (attempt("alone", 0, 1.0, 1),)),
        Group("direct", (attempt("direct", 0, 1.0, 0), attempt("direct", 1, 0.0, 0, "agent_failed"))),
        Group(
            "broken",
            (
                attempt("broken", 0, 1.0, 1),
                attempt("broken", 1, 0.0, 1),
                attempt("broken", 2, 0.0, 3, "infra_failed"),
                attempt("broken", 3, None, 1),
            ),
        ),
    )


def logprobs(model: Any, row: Row) -> torch.Tensor:
    """The log-probability of each token of the completion, one row at a time and without padding. Shape (T,)."""
    ids = torch.tensor([[*row.prompt, *row.completion]])
    scores = torch.log_softmax(model(input_ids=ids).logits[0].float(), dim=-1)
    places = torch.arange(len(row.prompt) - 1, ids.shape[1] - 1)
    return scores[places, ids[0, places + 1]]


def hand_written(
    model: Any,
    credited: Credited,
    *,
    adapters: Mapping[str, str],
    beta: float = 0.0,
    low: float = 0.2,
    high: float = 0.28,
    old: Mapping[int, torch.Tensor] | None = None,
) -> torch.Tensor:
    """-(1/Z) Σ_i Σ_t m_it (w_i min(ρ A, clip(ρ) A) - β w_i (exp(δ) - δ - 1)), as the papers write it."""
    total = torch.zeros(())
    for at, one in enumerate(credited.rows):
        activate(model, adapter_of(one.row.role, adapters))
        now = logprobs(model, one.row)
        before = now.detach() if old is None else old[at]
        ratio = torch.exp(now - before)
        gained = torch.minimum(ratio * one.advantage, ratio.clamp(1 - low, 1 + high) * one.advantage)
        if beta:
            with torch.no_grad(), model.disable_adapter():
                apart = logprobs(model, one.row)
            all_trainable(model)
            apart = apart - now
            gained = gained - beta * (apart.exp() - apart - 1)
        total = total - (torch.tensor(one.row.mask) * one.weight * gained).sum()
    return total / credited.normaliser


def trainer(
    folder: Path, made: Any, collect: Any, credit: Credit, *, kind: type[RoleTrainer] = RoleTrainer, **settings: Any
) -> RoleTrainer:
    own = {name: settings.pop(name) for name in ("adapters",) if name in settings}
    given = {
        "steps": 1,
        "lr": 1e-3,
        "max_grad_norm": 1e9,
        "save_every": 1000,
        "checkpointing": False,
        "budget": 120,
    }
    collects = collect if callable(collect) else lambda _: Collected(tuple(collect))
    configuration = Configuration(model=ModelConfig(**own, bits=32), train=TrainConfig(**(given | settings)))
    return kind(made, tokenizer(), configuration, collects, credit, folder)
