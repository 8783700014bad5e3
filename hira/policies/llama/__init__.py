"""Models in GGUF files: `gguf:FILE` starts llama.cpp's server in a separate process and asks it."""
