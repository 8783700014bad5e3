"""What the chat template of a model does to conversations, without loading any weights."""

from pathlib import Path

from hira.trainers.configuration import Configuration


def notices(configuration: Configuration, folder: Path) -> tuple[str, ...] | None:
    """What the chat template does to conversations, None if the model is not on this machine. Loads no weights."""
    place = folder / Path(configuration.model.name).expanduser()
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None
    from hira.policies.local.template import Template

    name = str(place) if place.is_dir() else configuration.model.name
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError):
        return None
    return Template(tokenizer, where=f"model {name!r}").notices
