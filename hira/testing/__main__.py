"""A scripted endpoint in a separate process, for benchmarks and trials.

    python -m hira.testing --port 8099 --delay 0.2 --turns 5

Each conversation calls its first tool `--turns` times, then answers.
"""

import argparse
import threading

from hira.testing.endpoint import Endpoint, turns


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the base URL is printed")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--turns", type=int, default=5, help="tool calls a conversation before its answer")
    chosen = parser.parse_args()
    with Endpoint(turns(chosen.turns), delay=chosen.delay, keep=False, port=chosen.port) as endpoint:
        print(endpoint.base_url, flush=True)  # noqa: T201 - who started it reads where it listens
        threading.Event().wait()


if __name__ == "__main__":
    main()
