"""The contract that this project adds to import-linter sees what it is for, and no more."""

from __future__ import annotations

import pytest
from grimp import ImportGraph

from scripts.plugin_contract import PluginIndependence


def _chains(*imports: tuple[str, str]) -> list[str]:
    graph = ImportGraph()
    for module in ("p", "p.room", "p.room.a", "p.room.b", "p.room._shared", "p.low"):
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    contract = PluginIndependence(
        name="x", session_options={}, contract_options={"rooms": ["p.room", "p.not_built_yet"]}
    )
    found = contract.check(graph, verbose=False)
    assert found.kept is not bool(found.metadata["chains"])
    return found.metadata["chains"]


def test_what_is_shared_may_be_imported() -> None:
    assert _chains(("p.room.a", "p.room._shared"), ("p.room.b", "p.low"), ("p.room", "p.low")) == []


@pytest.mark.parametrize(
    ("imports", "chain"),
    [
        ([("p.room.a", "p.room.b")], "p.room.a -> p.room.b"),
        (
            [("p.room.b", "p.room._shared"), ("p.room._shared", "p.room.a")],
            "p.room.b -> p.room._shared -> p.room.a",
        ),
        (
            [("p.room.a", "p.low"), ("p.low", "p.room"), ("p.room", "p.room.b")],
            "p.room.a -> p.low -> p.room -> p.room.b",
        ),
    ],
)
def test_one_plugin_never_reaches_another(imports: list[tuple[str, str]], chain: str) -> None:
    assert _chains(*imports) == [chain]
