"""A page as a tree, without a browser: enough to ask what a reader or a screen reader meets."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    def all(self, *tags: str) -> list[Node]:
        found = [self] if self.tag in tags or not tags else []
        for child in self.children:
            if isinstance(child, Node):
                found += child.all(*tags)
        return found

    @property
    def text(self) -> str:
        parts = (c if isinstance(c, str) else c.text for c in self.children)
        return " ".join("".join(parts).split())


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root", {})
        self.path = [self.root]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, {k: v or "" for k, v in attrs})
        self.path[-1].children.append(node)
        if tag not in VOID:
            self.path.append(node)

    def handle_startendtag(self, tag, attrs):
        self.path[-1].children.append(Node(tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag):
        assert self.path[-1].tag == tag, f"</{tag}> closes <{self.path[-1].tag}>"
        self.path.pop()

    def handle_data(self, data):
        self.path[-1].children.append(data)


def parse(html: str) -> Node:
    """Read a page; a tag that is not closed where it should be fails."""
    tree = _Tree()
    tree.feed(html)
    tree.close()
    assert tree.path == [tree.root]
    return tree.root
