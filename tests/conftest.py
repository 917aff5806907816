"""What holds for every test: one thread a worker, and the same examples again in CI."""

from __future__ import annotations

import os

# Two BLAS threads on two busy cores spin-wait for one another. Set before anything imports numpy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# No plugin and no browser under test may look for a network that CI does not have.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from hypothesis import HealthCheck, settings

# A first call that compiles a kernel is slow, and so is a machine that others share.
_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("here", **_CALM)
settings.register_profile("ci", derandomize=True, print_blob=True, **_CALM)
settings.load_profile("ci" if os.environ.get("CI") else "here")
