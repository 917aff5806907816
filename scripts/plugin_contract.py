"""An import-linter contract: the plugin files of one room never import one another.

import-linter's own ``independence`` takes a list of modules or ``room.*``; the first would not
see a new file, the second would forbid the room's shared ``_name.py`` files, which are there to
be imported. This one reads the room: every file without a leading underscore is a plugin.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PluginIndependence(Contract):
    """No chain of imports leads from one plugin of a room to another plugin of that room.

    ``rooms`` are packages; one that does not exist yet is skipped.
    """

    type_name = "plugin_independence"

    rooms = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  theirs
        """Search each room for chains between two of its plugins."""
        chains = sorted(
            " -> ".join([min(route.heads), *route.middle, min(route.tails)])
            for room in self.rooms
            for found in graph.find_illegal_dependencies_for_layers(layers=(_plugins(graph, room),))
            for route in found.routes
        )
        return ContractCheck(kept=not chains, metadata={"chains": chains})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each chain, and where the shared code belongs."""
        for chain in check.metadata["chains"]:
            output.print_error(chain)
        output.print_error("Move what two plugins need into a _name.py file, or a room below.")


def _plugins(graph: ImportGraph, room: str) -> set[str]:
    if room not in graph.modules:
        return set()
    return {
        module
        for module in graph.find_children(room)
        if not module.rpartition(".")[2].startswith("_")
    }
