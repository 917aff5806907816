"""How many addresses this process may reserve: libraries reserve far more than they use."""

from __future__ import annotations


def read_address_space_limit_bytes() -> int | None:
    """Return the limit that ``ulimit -v`` sets, in bytes, or None if there is no limit.

    Examples
    --------
    >>> limit = read_address_space_limit_bytes()
    >>> limit is None or limit > 0
    True
    """
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else soft
