"""Models in GGUF files: `gguf:FILE` starts llama.cpp's server in a process of its own and asks it."""
