"""The experts, cheapest first. One of your own needs no change here: hand it to the workflow."""

from hira.agents.expert import Expert
from hira.agents.experts.looping import Code, DeepSearch, Reader
from hira.agents.experts.multimodal import Multimodal
from hira.agents.experts.simple_search import SimpleSearch

EXPERTS: tuple[Expert, ...] = (SimpleSearch(), Code(), Multimodal(), Reader(), DeepSearch())

__all__ = ["EXPERTS", "Code", "DeepSearch", "Multimodal", "Reader", "SimpleSearch"]
