"""The program that draws figures in a process of its own, where memory is limited.

Vega's engine reserves tens of gigabytes of addresses as it starts. Where ``ulimit -v`` forbids
that, it does not fail: it ends its process, by a trap. Here that is not the audit's own.
Lines in, lines out: ``{"spec": …, "config": …}`` to ``{"svg": …}`` or ``{"error": …}``. It is run
as a file and imports nothing of isolux.
"""

from __future__ import annotations

import json
import sys

__all__ = ["serve"]


def serve() -> None:
    """Draw a chart for each line of standard input until it ends."""
    import vl_convert

    for line in sys.stdin:
        asked = json.loads(line)
        try:
            # No address may be read: data are in the spec, and a name that looks like one is one.
            svg = vl_convert.vegalite_to_svg(
                asked["spec"], config=asked["config"], allowed_base_urls=[]
            )
        except Exception as error:  # noqa: BLE001 - told to the process that asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        else:
            answer = {"svg": svg}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
