"""A training run as TOML with dotted overrides (`train.steps=200`), checked before anything is loaded.

The table in docs/training.md describes every key; this module has reasons and papers.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hira.core.errors import UsageError, did_you_mean
from hira.core.wrong_values import list_wrong_values

HALF = 16
"""The most bits of a base that computes in half precision."""


class _StrictConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values: Any) -> Any:
        for key in values if isinstance(values, Mapping) else ():
            if key not in cls.model_fields:
                fix = did_you_mean(str(key), cls.model_fields)
                raise UsageError(f"unknown key {key!r}", where=str(key), fix=fix)
        return values


class ModelConfig(_StrictConfig):
    name: str = ""
    adapters: Mapping[str, str] = Field(default_factory=lambda: {"*": "default"}, min_length=1)
    """The adapter of each role; `*` names that of all others."""
    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    targets: str | tuple[str, ...] = "all-linear"
    start: Mapping[str, Path] = Field(default_factory=dict)
    bits: Literal[4, 16, 32, 64] = 16
    """The base's precision: 16 is bf16, 4 is nf4; 64 is for small models whose runs must be reproducible token by
    token."""


class SourceConfig(_StrictConfig):
    """One of several sources of questions: a file or a set's name. `sample` questions are drawn from it with the run's
    seed, all if it is not set."""

    name: str
    split: str = ""
    config: str = ""
    sample: int | None = Field(default=None, ge=1)
    columns: Mapping[str, str] = Field(default_factory=dict)


class DataConfig(_StrictConfig):
    """Questions with their answers, as `hira eval` takes them."""

    train: str = ""
    split: str = ""
    config: str = ""
    sources: tuple[SourceConfig, ...] = ()
    """Several files and sets, mixed (MARS, Table 6)."""
    held_out: str | Mapping[str, str] = ""
    """The questions of exams: a file or a set, or several by the names that their figures get (MATPO, Fig. 5)."""
    limit: int | None = Field(default=None, ge=1)
    columns: Mapping[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_one_way(self) -> "DataConfig":
        if self.train and self.sources:
            fix = "list all files and sets as data.sources"
            raise UsageError("`train` and `sources` are both given", where="[data]", fix=fix)
        return self


class RolloutConfig(_StrictConfig):
    """An update's rollouts, their deadlines and their sampler."""

    questions: int = Field(default=8, ge=1)
    attempts: int = Field(default=8, ge=2)
    """G, the number of attempts at each question."""
    refill: int = Field(default=0, ge=0)
    """How many times others replace questions whose attempts all earn the same, which teaches nothing (DAPO's dynamic
    sampling)."""
    concurrency: int = Field(default=128, ge=1)
    call_seconds: float = Field(default=600, gt=0)
    rollout_seconds: float = Field(default=1800, gt=0)
    reward_seconds: float = Field(default=120, gt=0)
    heartbeat_seconds: float = Field(default=30, gt=0)
    window: int = Field(default=16_384, ge=256)
    samples: int = Field(default=4, ge=0)
    vllm: str = ""
    """The address of a vLLM server that samples in place of this process, such as http://127.0.0.1:8000/v1
    (hira.trainers.engines)."""
    vllm_model: str = ""


class StageConfig(_StrictConfig):
    """The options of MarsRL. With `staleness` updates run in the pipeline, else after all their rollouts."""

    picks: int = Field(default=2, ge=1)
    sampling: Literal["random", "balanced", "adaptive"] = "adaptive"
    roles: tuple[Literal["solver", "verifier", "corrector"], ...] = ()
    masking: bool = True
    """Leaves well-mastered tokens of right answers out while the entropy is under `entropy`."""
    mastered: float = Field(default=0.99, gt=0, le=1)
    """The probability from which a token is mastered."""
    entropy: float = Field(default=0.2, ge=0)
    staleness: int = Field(default=0, ge=0)
    """The most updates between the weights that sampled a row and the update that trains on it."""
    problems: int = Field(default=32, ge=1)
    groups: int = Field(default=32, ge=1)
    segment: int = Field(default=0, ge=0)


class RewardConfig(_StrictConfig):
    """The judging of answers: by words, or by a `judge` model."""

    match: Literal["contains", "exact", "f1", "number"] = "contains"
    judge: str = ""
    judge_url: str = ""
    criteria: Literal["", "hira", "webwalker", "simpleqa", "hle"] = ""
    """The judge's criteria, those of a paper; by default the recipe's."""
    generator: str = ""
    """Writes the rubrics of reports: a model, by default the judge, or `general` for the same rubric everywhere."""
    generator_url: str = ""
    at_once: int = Field(default=64, ge=1)
    temperature: float = Field(default=0.0, ge=0, le=2)
    top_p: float = Field(default=0.95, gt=0, le=1)
    preference: float = Field(default=1.0, ge=0)
    """The weight of the preferred order in the hybrid reward of rubrics (λ_pref)."""
    quality: float = Field(default=1.0, ge=0)
    """The weight of the judge's quality (λ_llm)."""
    judge_scale: float = Field(default=1.0, ge=0)
    format: float | None = Field(default=None, ge=0, le=1)
    """The share of the reward for calls that succeed, by default MATPO's 0.1 in its recipe and 0 elsewhere."""
    over: str = ""
    """The workflow in which the untrained model's reward is subtracted."""
    variant: Literal["paper", "released"] = "paper"
    """The format reward of the paper, or of MATPO's released code."""


class TrainConfig(_StrictConfig):
    steps: int = Field(default=100, ge=1)
    lr: float = Field(default=2e-5, gt=0)
    """LoRA needs 1e-5 to 5e-5 with large models, and far more with tiny ones."""
    warmup: int = Field(default=0, ge=0)
    schedule: Literal["constant_with_warmup", "linear", "cosine"] = "constant_with_warmup"
    beta: float = Field(default=0.0, ge=0)
    """The weight of the KL term towards the base without adapter."""
    clip_low: float = Field(default=0.2, gt=0)
    """DAPO's ε_low."""
    clip_high: float = Field(default=0.28, gt=0)
    """DAPO's ε_high."""
    ratio: Literal["token", "sequence"] = "token"
    """The ratio of each token, or of the sequence as in GSPO: the mean of its tokens' logarithms."""
    iterations: int = Field(default=1, ge=1)
    """The optimiser steps for each set of rollouts. With one the ratio of new and old policy is 1, and nothing is
    clipped."""
    old: Literal["trainer", "sampler"] = "trainer"
    """The log-probabilities of the old policy: the trainer's, computed before the step, or the sampler's, which is
    right where rollouts are older than the weights."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    budget: int = Field(default=16_384, ge=1)
    mask_overlong: bool = False
    """Keeps conversations whose last reply was cut off out of the loss."""
    checkpointing: bool = True
    save_every: int = Field(default=10, ge=1)
    keep: int = Field(default=2, ge=1)
    report_to: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_saving(self) -> "TrainConfig":
        if self.save_every % self.iterations:
            what = f"save_every {self.save_every} would save in the middle of {self.iterations} iterations"
            fix = "make train.save_every a multiple of train.iterations: a run resumes between sets of rollouts"
            raise UsageError(what, where="[train]", fix=fix)
        return self


class SftConfig(_StrictConfig):
    """Supervised training: `hira-train sft`."""

    conversations: str = ""
    """The file of conversations, as `hira runs export` writes them; without one, the model's own rollouts."""
    steps: int = Field(default=200, ge=1)
    batch: int = Field(default=8, ge=1)
    lr: float = Field(default=1e-4, gt=0)
    warmup: int = Field(default=10, ge=0)
    updates: int = Field(default=1, ge=1)
    least: float = Field(default=0.5, ge=0, le=1)
    save_every: int = Field(default=100, ge=0)


class ExamConfig(_StrictConfig):
    """The exams on held-out questions: every `every` steps (0: before and after), `attempts` times at temperature 1.
    With `best` the run saves the adapters of its best exam, not of its last step; with `patience` it ends after that
    many exams without an improvement."""

    every: int = Field(default=0, ge=0)
    attempts: int = Field(default=1, ge=1)
    best: bool = False
    patience: int = Field(default=0, ge=0)


class Configuration(_StrictConfig):
    recipe: str = "matpo"
    out: Path = Path("runs/train")
    seed: int = 0
    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    rollouts: RolloutConfig = RolloutConfig()
    marsrl: StageConfig = StageConfig()
    reward: RewardConfig = RewardConfig()
    credit: Mapping[str, bool | int | float | str] = Field(default_factory=dict)
    train: TrainConfig = TrainConfig()
    sft: SftConfig = SftConfig()
    exam: ExamConfig = ExamConfig()
    settings: Mapping[str, Any] = Field(default_factory=dict)
    """Settings of hira.toml for the rollouts' runs."""
    workflow: Mapping[str, bool | int | float | str] = Field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def find_keys(name: str) -> list[str]:
    """Return the keys of that name, with their sections: `train.lr` for `lr`."""
    whole = Configuration()
    sections = [(f"{section}.", part) for section, part in whole if isinstance(part, _StrictConfig)]
    return [f"{prefix}{name}" for prefix, part in [("", whole), *sections] if name in type(part).model_fields]


def load_configuration(file: Path | None, overrides: Sequence[str] = ()) -> Configuration:
    """Read a configuration file and apply dotted overrides. Raises `UsageError` with the place of an unknown or wrong
    value."""
    values: dict[str, Any] = {}
    if file:
        try:
            values = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            fix = "name a configuration in TOML; docs/training.md has one to copy"
            raise UsageError(f"the configuration cannot be read: {error.strerror}", where=str(file), fix=fix) from None
        except (ValueError, RecursionError) as error:  # also of a number with too many digits
            fix = "correct it, or name another file; docs/training.md has one to copy"
            raise UsageError(f"the configuration is not valid TOML: {error}", where=f"in {file}", fix=fix) from None
    for text in overrides:
        _override(values, text)
    try:
        return Configuration(**values)
    except UsageError as error:
        where = _find_place(error.where.strip("[]"), file, overrides)
        raise UsageError(error.what, where=where, fix=error.fix) from None
    except ValidationError as error:
        wrong = list_wrong_values(error, values)[0]
        key = ".".join(map(str, wrong.keys))
        raise UsageError(wrong.explain(key), where=_find_place(key, file, overrides), fix=f"correct {key}") from None


def _find_place(key: str, file: Path | None, overrides: Sequence[str]) -> str:
    """Return where a key is set, given its whole name or a part of it."""
    names = [text.partition("=")[0] for text in overrides]
    given = any(key in (name, *name.split(".")) for name in names)
    if given and file and "." not in key:
        return f"in {file} or on the command line"
    return f"in {file}" if file and not given else "on the command line"


def _override(values: dict[str, Any], text: str) -> None:
    """Set `train.lr=1e-5` in the values. Anything but a number, a list or a truth value is text."""
    name, equals, value = text.partition("=")
    parts = name.split(".")
    if not equals or not all(parts):
        raise UsageError(f"{text!r} is not an override", fix="write SECTION.KEY=VALUE, such as train.lr=1e-5")
    table = values
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise UsageError(f"{name!r} cannot be set: {part!r} is a value, not a section", fix="correct the name")
    try:
        table[parts[-1]] = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        table[parts[-1]] = value
