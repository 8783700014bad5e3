"""A configuration becomes a training run: questions, settings, workflow, rewards, credit, weights."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, get_type_hints

from hira.agents.run_context import RoleConfig
from hira.core.errors import UsageError, did_you_mean
from hira.core.files import replace_file
from hira.core.wrong_values import read_value
from hira.evaluation import data
from hira.evaluation.data import Selection
from hira.evaluation.preferences import pairs_of
from hira.evaluation.public import draw
from hira.evaluation.rewards.answer_judge import JUDGES
from hira.evaluation.rewards.answers import ByJudge, ByWords, Gated, Reward, WithFormat
from hira.evaluation.rewards.match import contains, equal, exact, f1
from hira.evaluation.rewards.rubrics import GENERAL_RUBRICS
from hira.journal.encoding import read_json, validate
from hira.runtime.registry import make_workflow
from hira.runtime.settings import Settings
from hira.runtime.settings import load as load_settings
from hira.trainers.configuration import Configuration, DataConfig, SourceConfig
from hira.trainers.credit import Credit
from hira.trainers.credit.checks import run_credit
from hira.trainers.credit.masking import drop_mastered, drop_overlong
from hira.trainers.recipes import Data, Judges, Recipe, find_recipe
from hira.trainers.records import writing
from hira.trainers.rewards import ByFunction, GainOver, Ranked
from hira.trainers.rollouts import Problem
from hira.trainers.rows import Credited, Group
from hira.workflows import BuiltIn

BEGUN = "configuration.json"
MATCHES: Mapping[str, Callable[[str, str], float]] = {"contains": contains, "exact": exact, "f1": f1, "number": equal}


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """A checked configuration, before any weights are loaded."""

    configuration: Configuration
    recipe: Recipe
    settings: Settings
    workflow: BuiltIn
    problems: tuple[Problem, ...]
    held_out: tuple[Problem, ...]
    folder: Path
    began: float
    """The time that gives all prompts their date."""
    unasked: int = 0
    """The number of training questions that are left out because their answer is unknown."""

    @property
    def repeated(self) -> int:
        """The number of training questions that repeat an earlier one."""
        return len(self.problems) - len({_plain(problem.question) for problem in self.problems})

    @property
    def shared(self) -> int:
        """The number of held-out questions that are also trained on."""
        known = {_plain(problem.question) for problem in self.problems}
        return sum(_plain(problem.question) in known for problem in self.held_out)

    @property
    def trained(self) -> dict[str, str]:
        adapters = self.configuration.model.adapters
        roles = self.recipe.roles or self.workflow.roles
        return {role: adapters.get(role, adapters.get("*", "")) for role in sorted(roles)}


def make_plan(configuration: Configuration, folder: Path, environ: Mapping[str, str], home: Path) -> TrainingPlan:
    """Check all of a configuration and read its questions, with paths relative to `folder`. Raises `UsageError` for
    anything that cannot work."""
    plan = draft_plan(configuration, folder, environ, home)
    part, kind = plan.configuration.data, plan.recipe.data
    problems, unasked = read_problems(part, folder, kind, configuration.seed)
    sets = {"": part.held_out} if isinstance(part.held_out, str) else part.held_out
    held_out: list[Problem] = []
    for label, name in sets.items():
        read, _ = _read_source(SourceConfig(name=name, columns=part.columns), folder, kind)
        named = [replace(problem, id=f"{label}/{problem.id}", set=label) for problem in read]
        held_out += read if isinstance(part.held_out, str) else named
    return replace(plan, problems=problems, held_out=tuple(held_out), unasked=unasked)


def draft_plan(configuration: Configuration, folder: Path, environ: Mapping[str, str], home: Path) -> TrainingPlan:
    """Return the plan without questions: the names of recipe, settings, workflow, roles and credit are checked, and no
    file that the configuration names is read. Raises `UsageError` with the nearest name."""
    recipe = find_recipe(configuration.recipe)
    if not configuration.model.name:
        fix = 'write name = "…" below [model], or model.name=FOLDER on the command line'
        raise UsageError("no model is named", fix=fix)
    model = configuration.model
    path = folder / Path(model.name).expanduser()  # a name without a folder there is one of the Hub
    start = {name: folder / place.expanduser() for name, place in model.start.items()}
    resolved = {"name": str(path) if path.is_dir() else model.name, "start": start}
    configuration = configuration.model_copy(update={"model": model.model_copy(update=resolved)})
    settings = settings_of(configuration, recipe, folder, environ, home)
    workflow = recipe.make() if recipe.make else make_workflow(settings)
    if recipe.roles and not recipe.roles <= workflow.roles:
        what = f"the recipe {recipe.name!r} trains {', '.join(sorted(recipe.roles))}"
        fix = f'use workflow = "{recipe.workflow}"'
        raise UsageError(f"{what}, which the workflow {workflow.name!r} does not have", fix=fix)
    _check_credit(configuration, recipe)
    if configuration.reward.over:
        make_workflow(settings.with_values({"workflow": configuration.reward.over}, "reward.over"))
    out, began = folder / configuration.out, time.time()
    with suppress(OSError, ValueError, KeyError, TypeError):
        began = float(read_json(out.joinpath(BEGUN).read_bytes())["began"])  # a run that resumes keeps its day
    plan = TrainingPlan(configuration, recipe, settings, workflow, (), (), out, began)
    if strange := [role for role in configuration.model.adapters if role != "*" and role not in workflow.roles]:
        fix = did_you_mean(strange[0], sorted(workflow.roles))
        raise UsageError(f"model.adapters: workflow {workflow.name!r} has no role {strange[0]!r}", fix=fix)
    if missing := [role for role, adapter in plan.trained.items() if not adapter]:
        fix = 'name one for all others: adapters = {"*" = "default"}'
        raise UsageError(f"model.adapters: the role {missing[0]!r} has no adapter", fix=fix)
    return plan


def _plain(question: str) -> str:
    return " ".join(question.casefold().split())


def _check_credit(configuration: Configuration, recipe: Recipe) -> None:
    known = [name for name, value in signature(recipe.credit).parameters.items() if value.kind is value.KEYWORD_ONLY]
    kinds = get_type_hints(recipe.credit)
    for name, value in configuration.credit.items():
        if name not in known:
            fix = did_you_mean(name, known)
            raise UsageError(f"credit.{name}: {recipe.name} has no such option", fix=fix)
        read_value(kinds[name], value, f"credit.{name}")


def settings_of(
    configuration: Configuration, recipe: Recipe, folder: Path, environ: Mapping[str, str], home: Path
) -> Settings:
    """Return the settings of the rollouts' runs: those of the configuration over those of the machine."""
    settings_values = dict(configuration.settings)
    for name in settings_values:
        if name not in Settings.model_fields:
            raise UsageError(f"settings.{name} is unknown", fix=did_you_mean(name, Settings.model_fields))
    settings_values = {"workflow": recipe.workflow, "journal": "off", **settings_values}
    if configuration.workflow:
        settings_values["workflows"] = {settings_values["workflow"]: dict(configuration.workflow)}
    models = ("HIRA_MODEL", "HIRA_BASE_URL", "HIRA_PROFILE")
    quiet = {name: value for name, value in environ.items() if name not in models}
    names = {name: f"settings.{name}" for name in settings_values}
    return load_settings({"model": "offline", **settings_values}, quiet, folder, home, names)


def read_problems(part: DataConfig, folder: Path, kind: Data, seed: int = 0) -> tuple[tuple[Problem, ...], int]:
    """Read the problems of training, those of a file or of all sources, and count the questions that are left out
    because their answer is unknown."""
    if not part.sources:
        source = SourceConfig(name=part.train, split=part.split, config=part.config, columns=part.columns)
        return _read_source(source, folder, kind, part.limit)
    read = [_read_source(source, folder, kind) for source in part.sources]
    problems = [
        replace(problem, id=f"{source.name}/{problem.id}")
        for source, (problems, _) in zip(part.sources, read, strict=True)
        for problem in draw(problems, source.sample, seed)
    ]
    return tuple(problems[: part.limit]), sum(unasked for _, unasked in read)


def _read_source(
    source: SourceConfig, folder: Path, kind: Data, limit: int | None = None
) -> tuple[tuple[Problem, ...], int]:
    name = source.name
    if not name:
        return (), 0
    if kind == "pairs":
        pairs = pairs_of(folder / Path(name).expanduser())[:limit]
        return tuple(Problem(pair.id, pair.query, (pair.accepted, pair.rejected)) for pair in pairs), 0
    selection = Selection(limit=limit, columns=source.columns, split=source.split, config=source.config)
    items = data.load(name, selection, folder).items
    asked = items if kind == "queries" else [item for item in items if item.answerable]
    if kind == "answers":
        if lacking := next((item for item in items if not (item.answerable or item.unanswerable)), None):
            fix = 'name its column: data.columns.answer = "NAME"; if the answer is unknown, write "answer": []'
            raise UsageError(f"question {lacking.id!r} of {name} has no answer", fix=fix)
        if not asked:
            raise UsageError(f"no question of {name} has an answer", fix="give each question its `answer`")
    references = [(item.answers or (item.gold,)) if item.answerable else () for item in asked]
    known = zip(asked, references, strict=True)
    problems = tuple(Problem(item.id, item.question, answers, item.files) for item, answers in known)
    return problems, len(items) - len(asked)


def reward_of(plan: TrainingPlan) -> Reward:
    """Return the reward of the recipe, over that of `reward.over` if it is set."""
    part, recipe = plan.configuration.reward, plan.recipe
    reward: Reward
    if recipe.reward is not None:
        reward = recipe.reward if isinstance(recipe.reward, GainOver | Ranked) else ByFunction(recipe.reward)
    elif recipe.judged is not None:
        judge = _open_judge(plan, part.judge, part.judge_url, "judge")
        written = "" if part.generator == GENERAL_RUBRICS else part.generator
        reward = recipe.judged(Judges(part, judge, _open_judge(plan, written, part.generator_url, "generator")))
    else:
        judge = _open_judge(plan, part.judge, part.judge_url, "judge")
        by = JUDGES[part.criteria or recipe.criteria]
        reward = ByJudge(judge, by) if judge else ByWords(MATCHES[part.match])
        if share := recipe.format if part.format is None else part.format:
            reward = WithFormat(reward, share, part.variant)
    if hasattr(reward, "score_group") and (part.over or recipe.staged):
        what = "a reward that ranks a group has no value of its own"
        fix = 'remove reward.over, and train steps with a reward of single rollouts: recipe = "marsrl"'
        raise UsageError(what, where=f"recipe {recipe.name!r}", fix=fix)
    return GainOver(reward, part.over) if part.over else reward


def _open_judge(plan: TrainingPlan, model: str, url: str, name: str) -> RoleConfig | None:
    """Return a model of the reward, sampled as configured and `at_once` calls at a time; None if `model` is empty."""
    if not model:
        return None
    from hira.runtime.factory import configure_roles

    part = plan.configuration.reward
    values = {"model": model, "base_url": url, "temperature": part.temperature, "top_p": part.top_p}
    roles, _ = configure_roles(plan.settings.with_values(values, f"reward.{name}"), {})
    return replace(roles["*"], policy=Gated(roles["*"].policy, part.at_once))


def credit_of(plan: TrainingPlan) -> Credit:
    part, options = plan.configuration.marsrl, dict[str, Any](plan.configuration.credit)
    if plan.recipe.staged and part.roles:
        options["roles"] = frozenset(part.roles)

    def credit(groups: Sequence[Group]) -> Credited:
        credited = run_credit(partial(plan.recipe.credit, **options), groups)
        if plan.recipe.staged and part.masking:
            credited = drop_mastered(credited, tau=part.mastered, target=part.entropy)
        return drop_overlong(credited) if plan.configuration.train.mask_overlong else credited

    return credit


def write_configuration(plan: TrainingPlan) -> None:
    """Write the plan's configuration to its folder, which keeps other runs out."""
    record = {"began": plan.began, "configuration": plan.configuration.to_json()}
    text = json.dumps(record, indent=2, ensure_ascii=False)
    with writing(plan.folder / BEGUN):
        replace_file(plan.folder / BEGUN, [f"{text}\n".encode()])  # another process of this run may read it now


def read_configuration(folder: Path) -> Configuration | None:
    try:
        record = read_json(folder.joinpath(BEGUN).read_bytes())
        values = validate(dict[str, Any], record["configuration"] if isinstance(record, dict) else record)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{BEGUN} cannot be read: {error}", where=str(folder), fix="name another folder") from None
    return Configuration(**values)


def open_run(folder: Path) -> Configuration:
    """Return the configuration of the run in a folder. Raises `UsageError` for a folder without one."""
    configuration = read_configuration(folder)
    if configuration is None:
        what = "the folder does not hold a run" if folder.is_dir() else "there is no such folder"
        fix = "name the output folder of hira-train grpo, sft or demo: the run's `out`"
        raise UsageError(what, where=str(folder), fix=fix)
    return configuration


def is_resumed(plan: TrainingPlan) -> bool:
    """Return whether the folder holds this very run. Raises `UsageError` if it holds another, even one without results:
    that may be in its first rollouts."""
    before = read_configuration(plan.folder)
    if before is None:
        return False
    mine, theirs = plan.configuration.to_json(), before.to_json()
    changed = [name for name in mine if mine[name] != theirs[name] and name != "out"]
    if changed:
        what = f"the folder holds a run with another {changed[0]!r}"
        fix = f"name another folder with out=FOLDER, or continue the run in it: --resume {plan.configuration.out}"
        raise UsageError(what, where=str(plan.folder), fix=fix)
    return True
