"""How files write yes and no, where a column may hold nothing else."""

from __future__ import annotations

YES = ("1", "1.0", "true", "t", "yes", "y")
"""In lower case."""
NO = ("0", "0.0", "false", "f", "no", "n")
"""In lower case; a blank cell is for the reader to judge."""
