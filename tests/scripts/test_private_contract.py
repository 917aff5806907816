"""What a package keeps to itself: the contract sees imports from outside, and no others."""

from __future__ import annotations

from grimp import ImportGraph

from scripts.private_contract import PrivateModules


def _broken(*imports: tuple[str, str]) -> list[str]:
    graph = ImportGraph()
    for module in ("p", "p.a", "p.a.x", "p.a._own", "p.a._own.part", "p.b", "p.b.y"):
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    contract = PrivateModules(name="x", session_options={}, contract_options={"packages": ["p"]})
    found = contract.check(graph, verbose=False)
    assert found.kept is not bool(found.metadata["broken"])
    return found.metadata["broken"]


def test_a_room_may_import_its_own() -> None:
    assert _broken(("p.a.x", "p.a._own"), ("p.a", "p.a._own.part"), ("p.b.y", "p.a.x")) == []


def test_another_room_may_not() -> None:
    found = _broken(("p.b.y", "p.a._own"), ("p", "p.a._own.part"))
    assert found == ["p -> p.a._own.part", "p.b.y -> p.a._own"]
