"""The contract that this project adds to import-linter sees what it is for, and no more."""

from __future__ import annotations

import pytest
from grimp import ImportGraph

from scripts.plugin_contract import PluginIndependence


def _chains(*imports: tuple[str, str]) -> list[str]:
    graph = ImportGraph()
    for module in ("p", "p.plugins", "p.plugins.a", "p.plugins.b", "p.plugins._shared", "p.low"):
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    contract = PluginIndependence(
        name="x",
        session_options={},
        contract_options={"packages": ["p.plugins", "p.not_built_yet"]},
    )
    found = contract.check(graph, verbose=False)
    assert found.kept is not bool(found.metadata["chains"])
    return found.metadata["chains"]


def test_what_is_shared_may_be_imported() -> None:
    assert (
        _chains(
            ("p.plugins.a", "p.plugins._shared"), ("p.plugins.b", "p.low"), ("p.plugins", "p.low")
        )
        == []
    )


@pytest.mark.parametrize(
    ("imports", "chain"),
    [
        ([("p.plugins.a", "p.plugins.b")], "p.plugins.a -> p.plugins.b"),
        (
            [("p.plugins.b", "p.plugins._shared"), ("p.plugins._shared", "p.plugins.a")],
            "p.plugins.b -> p.plugins._shared -> p.plugins.a",
        ),
        (
            [("p.plugins.a", "p.low"), ("p.low", "p.plugins"), ("p.plugins", "p.plugins.b")],
            "p.plugins.a -> p.low -> p.plugins -> p.plugins.b",
        ),
    ],
)
def test_one_plugin_never_reaches_another(imports: list[tuple[str, str]], chain: str) -> None:
    assert _chains(*imports) == [chain]
