"""The program that draws figures in a process of its own, see ``apart``.

Vega's engine reserves tens of gigabytes of addresses as it starts. Where ``ulimit -v`` forbids
that, it does not fail: it ends its process, by a trap. Here that is not the audit's own.
It starts before it is asked for anything, and leaves Ctrl-C to the process that asks: the end of
standard input ends it.
Lines in, lines out: ``{"spec": …, "config": …}`` to ``{"svg": …}`` or ``{"error": …}``. It is run
as a file and imports nothing of isolux.
"""

from __future__ import annotations

import json
import signal
import sys

__all__ = ["serve"]

_FIRST = {
    "data": {"values": [{"a": 1, "b": "x"}]},
    "mark": "point",
    "encoding": {
        "x": {"field": "a", "type": "quantitative"},
        "y": {"field": "b", "type": "nominal"},
    },
}


def serve() -> None:
    """Draw a chart for each line of standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import vl_convert

    vl_convert.vegalite_to_svg(_FIRST, allowed_base_urls=[])  # starts the engine
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
