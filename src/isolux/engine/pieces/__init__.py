"""Work that is done shard by shard, wherever: pieces, what is kept of them, and who computes them.

A piece is a function of isolux, named, and what it is given as JSON; it returns tables. Its key is
the SHA-256 of all that its tables depend on. ``run_pieces`` computes the pieces whose tables a
``PieceStore`` lacks, by one of three executors: this process, processes of this machine, or Ray.
Whatever computes them, the tables are the same, so an executor moves no number.
"""

from __future__ import annotations

from isolux.engine.pieces.piece import Limits, Piece, Tables, compute
from isolux.engine.pieces.running import executor_of, run_pieces
from isolux.engine.pieces.store import PieceStore
from isolux.engine.pieces.work import Executor, Work

__all__ = [
    "Executor",
    "Limits",
    "Piece",
    "PieceStore",
    "Tables",
    "Work",
    "compute",
    "executor_of",
    "run_pieces",
]
