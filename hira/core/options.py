"""The options that workflows share, and the parts of HiRA that can be left out."""

from typing import Literal, get_args

Part = Literal["reasoning-transfer", "memory", "search", "code", "multimodal"]
"""A mechanism of HiRA, or an ability of its experts (HiRA, Table 2)."""
PARTS: tuple[Part, ...] = get_args(Part)

SHARED = {
    "without": "leave out: " + ", ".join(PARTS),
    "max_subtasks": "maximum number of subtasks (10)",
    "parallel": "maximum number of subtasks that the planner hands out in one turn (1)",
}
"""Options that mean the same in every workflow that has them, with their help; without a value the workflow's own
holds."""
