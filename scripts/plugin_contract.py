"""An import-linter contract: the plugin files of one package never import one another.

import-linter's own ``independence`` takes a list of modules or ``package.*``; the first would not
see a new file, the second would forbid the package's shared ``_name.py`` files, which are there to
be imported. This one reads the package: every file without a leading underscore is a plugin.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PluginIndependence(Contract):
    """No chain of imports leads from one plugin of a package to another plugin of that package.

    ``packages`` are packages; one that does not exist yet is skipped.
    """

    type_name = "plugin_independence"

    packages = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  theirs
        """Search each package for chains between two of its plugins."""
        chains = sorted(
            " -> ".join([min(route.heads), *route.middle, min(route.tails)])
            for package in self.packages
            for found in graph.find_illegal_dependencies_for_layers(
                layers=(_plugins(graph, package),)
            )
            for route in found.routes
        )
        return ContractCheck(kept=not chains, metadata={"chains": chains})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each chain, and where the shared code belongs."""
        for chain in check.metadata["chains"]:
            output.print_error(chain)
        output.print_error("Move what two plugins need into a _name.py file, or a package below.")


def _plugins(graph: ImportGraph, package: str) -> set[str]:
    if package not in graph.modules:
        return set()
    return {
        module
        for module in graph.find_children(package)
        if not module.rpartition(".")[2].startswith("_")
    }
