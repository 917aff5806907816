"""Messages about too little memory: before the start, and where a library failed.

Nothing is imported that needs memory: numpy, scipy and polars fail to load under a low limit of
addresses (``ulimit -v``), or end the process.
"""

from __future__ import annotations

from isolux.core.address_space import read_address_space_limit_bytes

_MIN_ADDRESS_BYTES = 1440 << 20  # bytes; measured: below, loading those three fails or aborts
_HINT = (
    "  what to do: ask for less (fewer --replicates, fewer groups), or raise the limit"
    " (ulimit -v shows it)"
)


def explain_low_address_limit() -> str | None:
    """Explain an address limit that is too low; None: the limit is high enough."""
    limit = read_address_space_limit_bytes()
    if limit is None or limit >= _MIN_ADDRESS_BYTES:
        return None
    return (
        "isolux: there is not enough memory to start\n"
        f"  expected: a limit of at least {_MIN_ADDRESS_BYTES >> 10:,} KiB of addresses\n"
        f"  found: {limit >> 10:,} KiB\n"
        "  what to do: raise the limit (ulimit -v)"
    )


def explain_memory_error(error: BaseException) -> str | None:
    """Explain an error that means too little memory; None: another error.

    Examples
    --------
    >>> print(explain_memory_error(MemoryError("102 TiB")).splitlines()[0])
    isolux: there is not enough memory
    >>> explain_memory_error(ValueError("no")) is None
    True
    """
    # Under a limit of addresses a library cannot be loaded, and polars cannot start its threads.
    is_load_failure = (
        isinstance(error, (ImportError, OSError)) or type(error).__name__ == "PanicException"
    )
    if not isinstance(error, MemoryError) and not (
        is_load_failure and read_address_space_limit_bytes() is not None
    ):
        return None
    error_lines = str(error).strip().splitlines()
    found_line = f"\n  found: {error_lines[-1][:300]}" if error_lines else ""
    return f"isolux: there is not enough memory{found_line}\n{_HINT}"
