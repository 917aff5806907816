"""What an optional package that is absent is told to be installed by."""

from __future__ import annotations

import pytest

from isolux.core.errors import SpecError
from isolux.core.extras import import_optional


def test_a_package_whose_requirements_exclude_ours_is_installed_alone():
    with pytest.raises(SpecError, match="needs nothing, which is not installed") as caught:
        import_optional(
            "nothing_here",
            package="nothing",
            extra="few",
            purpose="it",
            no_deps_packages="nothing==2.6",
        )
    assert "pip install 'isolux[few]' && pip install --no-deps nothing==2.6" in str(caught.value)
