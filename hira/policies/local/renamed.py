"""Old names of transformers that PEFT 0.21 and TRL 1.16 still call, though transformers 5.23 warns of them."""

import warnings

_OLD = r"`(is_gradient_checkpointing|gradient_checkpointing_(en|dis)able)` is deprecated"


def untold() -> None:
    """Leave these warnings out, and no other: whoever runs hira can change neither library."""
    warnings.filterwarnings("ignore", message=_OLD, category=FutureWarning)
