"""Serve a GGUF file with llama.cpp's server (wheel `xllamacpp`) on one thread, until the process is ended.

python benchmarks/real/serve.py MODEL.gguf [PORT]
"""

import sys
import time
from pathlib import Path

CONTEXT = 16_384
PORT = 8901


def serve(model: Path, port: int = PORT) -> None:
    """Serve the model and print its address once it answers."""
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(model)
    wanted.n_ctx = CONTEXT
    wanted.n_parallel = 1
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = port
    wanted.use_jinja = True
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1  # two stall each other on a busy machine
    server = xllamacpp.Server(wanted)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else PORT)
