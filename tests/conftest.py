"""What holds for every test: one thread a worker, bytecode kept, the same examples again in CI."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Two BLAS threads on two busy cores spin-wait for one another. Set before anything imports numpy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# No plugin and no browser under test may look for a network that CI does not have.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Containers often forbid bytecode: each process that a test starts would then spend a second on
# compiling the package, and pytest on each file of tests. It is kept out of the sources' folders.
if sys.dont_write_bytecode:
    kept = Path(__file__).resolve().parents[1] / ".pytest_cache" / "bytecode"
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(kept)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(kept)

from hypothesis import HealthCheck, settings

# A first call that compiles a kernel is slow, and so is a machine that others share.
_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
_FEW = {"max_examples": 100 if os.environ.get("ISOLUX_FAULTS") == "whole" else 40}
settings.register_profile("here", **_FEW, **_CALM)
settings.register_profile("ci", derandomize=True, print_blob=True, **_FEW, **_CALM)
settings.load_profile("ci" if os.environ.get("CI") else "here")
