"""What a check says of a claim."""

from typing import Literal

Verdict = Literal["supported", "contradicted", "unsupported", "unchecked"]
"""`unsupported`: the evidence does not say so. `unchecked`: nothing could compare the claim with the evidence."""
