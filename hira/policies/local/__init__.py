"""Weights in this process: `hf:NAME_OR_PATH` answers without a server, and trainers sample through the same classes.

Beside `hira.trainers` the only part of hira that imports torch, transformers and peft, and only when it is used.
"""
