"""The loss and its gradients are those of TRL's GRPOTrainer on the same rows, and hira stands on public names only."""

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from later import later, needs

from hira.trainers.credit import grpo, matpo
from hira.trainers.rows import Credited

torch = later("torch")
groups, model, tokenizer = later("tiny:groups"), later("tiny:model"), later("tiny:tokenizer")
pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]
TRAINERS = Path(__file__).parents[2] / "hira" / "trainers"
ALLOWED: dict[str, str] = {}
"""Private names of transformers, PEFT, accelerate and TRL that hira may use, each with what it is for. At most two."""


def rows_of(credited: Credited) -> dict[str, Any]:
    """All rows in one batch as TRL pads them: prompts on the left, completions on the right."""
    prompt = max(len(one.row.prompt) for one in credited.rows)
    completion = max(len(one.row.completion) for one in credited.rows)
    shape = (len(credited.rows), prompt), (len(credited.rows), completion)
    batch = {
        "prompt_ids": torch.zeros(shape[0], dtype=torch.long),
        "prompt_mask": torch.zeros(shape[0], dtype=torch.long),
        "completion_ids": torch.zeros(shape[1], dtype=torch.long),
        "completion_mask": torch.zeros(shape[1], dtype=torch.long),
        "tool_mask": torch.zeros(shape[1]),
        "old_per_token_logps": torch.zeros(shape[1]),
        "advantages": torch.tensor([one.advantage for one in credited.rows]),
        "num_items_in_batch": torch.tensor(credited.normaliser),
    }
    for place, one in enumerate(credited.rows):
        row, begin = one.row, prompt - len(one.row.prompt)
        batch["prompt_ids"][place, begin:] = torch.tensor(row.prompt)
        batch["prompt_mask"][place, begin:] = 1
        end = len(row.completion)
        batch["completion_ids"][place, :end] = torch.tensor(row.completion)
        batch["completion_mask"][place, :end] = 1
        batch["tool_mask"][place, :end] = torch.tensor(row.mask) * one.weight
        batch["old_per_token_logps"][place, :end] = torch.tensor(row.logprobs)
    return batch


def of_trl(folder: Path, credited: Credited, ratio: str) -> tuple[float, dict[str, Any]]:
    """The loss and the gradients of TRL's own trainer."""
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    made = model()
    arguments = GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=2,
        num_generations=2,
        loss_type="dapo",
        importance_sampling_level=ratio,
        epsilon_high=0.28,
        beta=0.0,
        bf16=False,
        use_cpu=True,
        report_to="none",
    )
    trainer = GRPOTrainer(
        model=made,
        reward_funcs=lambda **_: [],
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": ["w2", "w3"]}),
        processing_class=tokenizer(),
    )
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer.compute_loss(made, rows_of(credited))
    loss.backward()
    return float(loss.detach()), {name: one.grad for name, one in made.named_parameters() if one.grad is not None}


def of_hira(credited: Credited, ratio: Any) -> tuple[float, dict[str, Any]]:
    from hira.trainers.batches import Micro, make_tensors
    from hira.trainers.loss import policy_loss, score_tokens

    made = model()
    micro = Micro("", "default", credited.rows)
    batch = make_tensors(micro, rows=len(credited.rows), pad=0, items=credited.normaliser, device="cpu", old=True)
    scores = score_tokens(made, batch["ids"], batch["scored"])
    loss, _ = policy_loss(batch, scores, clip=(0.2, 0.28), beta=0.0, ratio=ratio)
    loss.backward()
    return float(loss.detach()), {name: one.grad for name, one in made.named_parameters() if one.grad is not None}


@pytest.mark.heavy
@pytest.mark.parametrize(("ratio", "credit"), [("token", matpo), ("sequence", lambda given: grpo(given, norm="dapo"))])
def test_the_loss_and_its_gradients_are_those_of_trl(ratio: str, credit: Any, tmp_path: Path) -> None:
    credited = credit(groups(12))
    (loss, gradients), (wanted, reference) = of_hira(credited, ratio), of_trl(tmp_path, credited, ratio)
    assert loss == pytest.approx(wanted, rel=1e-5)
    assert gradients.keys() == reference.keys()
    for name, gradient in gradients.items():
        noise = 3e-5 * float(reference[name].abs().max())  # of float32, which differs between processors
        torch.testing.assert_close(gradient, reference[name], rtol=1e-4, atol=noise, msg=name)


def test_the_ratio_of_a_sequence_does_not_depend_on_the_weights_of_its_tokens() -> None:
    """GSPO in rollouts of several rows: s is the mean over the row's tokens, w_i stands outside of it."""
    from hira.trainers.loss import Scores, policy_loss

    logps = torch.tensor([[-1.0, -2.0, -1.5], [-0.5, -1.0, 0.0]], requires_grad=True)
    old = torch.tensor([[-1.1, -1.7, -1.5], [-0.7, -0.9, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    weights = mask * torch.tensor([[0.05], [0.2]])  # a mask whose sum TRL raises to 1
    advantages = torch.tensor([1.0, -1.0])
    batch = {
        "weights": weights,
        "advantages": advantages,
        "old_logps": old,
        "sampled": old,
        "items": torch.tensor(2.0),
    }
    scores = Scores(logps, torch.zeros_like(logps))
    loss, figures = policy_loss(batch, scores, clip=(0.2, 0.28), beta=0.0, ratio="sequence")
    s = [((0.1 - 0.3 + 0.0) / 3), ((0.2 - 0.1) / 2)]
    wanted = -(3 * 0.05 * torch.tensor(s[0]).exp() - 2 * 0.2 * torch.tensor(s[1]).exp()) / 2
    assert float(loss.detach()) == pytest.approx(float(wanted), rel=1e-6)
    assert float(figures["sampler_drift"]) == pytest.approx((0.1 + 0.3 + 0.0 + 0.2 + 0.1) / 5, rel=1e-5)


def test_no_private_name_of_the_training_stack_is_overridden() -> None:
    """A minor version of transformers may change what begins with an underscore: an override would fail, or silently
    do nothing."""
    from transformers import Trainer, TrainerCallback

    from hira.trainers import grpo as reinforcement
    from hira.trainers import sft, weights

    for kind, base in (
        (reinforcement.RoleTrainer, Trainer),
        (sft.SftTrainer, Trainer),
        (reinforcement.RecordCallback, TrainerCallback),
        (weights.Muon, torch.optim.Optimizer),
    ):
        inherited = {name for parent in base.__mro__ for name in vars(parent)}
        given = {name for name in vars(kind) if name.startswith("_") and not name.startswith("__")}
        assert not given & inherited - ALLOWED.keys(), f"{kind.__name__} overrides {given & inherited}"
        used = private_names(inspect.getsource(kind), of="self") - given - assigned_names(inspect.getsource(kind))
        assert not used - ALLOWED.keys(), f"{kind.__name__} reads {used} of {base.__name__}"


def test_no_private_name_of_another_packages_object_is_read() -> None:
    known = {
        path: private_names(path.read_text(encoding="utf-8"))
        for path in sorted(TRAINERS.rglob("*.py"))
        if any(name in path.read_text(encoding="utf-8") for name in ("torch", "transformers", "peft", "accelerate"))
    }
    found = {path.name: names - ALLOWED.keys() for path, names in known.items() if names - ALLOWED.keys()}
    assert not found, f"private names: {found}"
    assert len(ALLOWED) <= 2


def private_names(source: str, *, of: str = "") -> set[str]:
    """The names with an underscore that are read of objects: of the one of that name, else of all but `self`."""
    attributes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    return {
        node.attr
        for node in attributes
        if node.attr.startswith("_") and not node.attr.startswith("__")
        if (isinstance(node.value, ast.Name) and node.value.id in (of or {"self", "cls"})) is bool(of)
    }


def assigned_names(source: str) -> set[str]:
    """The attributes that a class gives its objects itself."""
    return {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def test_the_names_that_hira_takes_from_the_training_stack_are_public() -> None:
    from accelerate import Accelerator
    from peft import PeftModel
    from transformers import Trainer, TrainingArguments
    from trl.trainer import add_fused_lm_head

    for owner, names in (
        (
            Trainer,
            ["train", "training_step", "compute_loss", "compute_loss_context_manager", "create_optimizer", "log"],
        ),
        (Trainer, ["floating_point_ops", "add_callback", "remove_callback"]),
        (PeftModel, ["set_adapter", "disable_adapter", "load_adapter", "add_adapter", "save_pretrained"]),
        (PeftModel, ["get_base_model"]),
        (Accelerator, ["no_sync", "autocast", "backward", "unwrap_model"]),
    ):
        missing = [name for name in names if not hasattr(owner, name)]
        assert not missing, f"{owner.__name__} of this version has no {missing}"
    fields = TrainingArguments.__dataclass_fields__
    assert {"activation_checkpointing", "train_sampling_strategy", "warmup_steps"} <= fields.keys()
    assert {"outputs", "temperature"} <= inspect.signature(add_fused_lm_head).parameters.keys()


def test_the_fused_head_of_trl_scores_as_ours_does() -> None:
    """Tokens are scored with it on a GPU; it works on a CPU, too."""
    from tiny import base
    from trl.trainer import add_fused_lm_head

    from hira.trainers.loss import score_tokens, score_tokens_fused

    made = base()
    ids = torch.randint(2, 40, (3, 9))
    mask = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0]])
    plain = score_tokens(made, ids, mask)
    add_fused_lm_head(made, outputs=("log_probs", "entropy"))
    fused = score_tokens_fused(made, ids, mask)
    torch.testing.assert_close(fused.logps * mask, plain.logps, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(fused.entropies * mask, plain.entropies, rtol=1e-4, atol=1e-5)
