"""An import-linter contract: what a package keeps to itself, no other package imports.

A file or folder whose name starts with ``_`` is shared by its package alone. import-linter's
``protected`` contract wants every such module listed; this one reads the tree.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PrivateModules(Contract):
    """No module imports a ``_name`` that lies in another package of ``packages``."""

    type_name = "private_modules"

    packages = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  theirs
        """Look at every private module's importers."""
        broken = sorted(
            f"{importer} -> {module}"
            for module in graph.modules
            if (home := _home(module)) is not None and home.partition(".")[0] in self.packages
            for importer in graph.find_modules_that_directly_import(module)
            if not f"{importer}.".startswith(f"{home}.")
        )
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each import, and where the shared code belongs."""
        for line in check.metadata["broken"]:
            output.print_error(line)
        output.print_error("Give it from the package's __init__, or move it to a package below.")


def _home(module: str) -> str | None:
    """Return the package that a private module belongs to; None where none of its names is private.

    The home of ``isolux.tasks._boxes.instance_tables`` is ``isolux.tasks``.
    """
    parts = module.split(".")
    for at, part in enumerate(parts):
        if part.startswith("_"):
            return ".".join(parts[:at])
    return None
