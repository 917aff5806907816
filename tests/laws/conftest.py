"""Write the page anew when a full run of the laws has ended."""

from __future__ import annotations

import pytest

from tests.laws import _page as pages
from tests.laws._figures import FULL


def pytest_sessionfinish(session: pytest.Session) -> None:
    if FULL and not hasattr(session.config, "workerinput"):  # the workers' figures are all there
        pages.write()
