"""Text of a given width on a screen, where a Chinese character is two columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolux.cli.streams import to_terminal_encoding

if TYPE_CHECKING:
    from rich.text import Text


def cut_middle_to_width(text: str, width: int) -> str:
    """Cut the middle of a text that is wider than so many columns of a screen.

    Where the screen has no ellipsis, ``..`` stands in its place.

    Examples
    --------
    >>> (
    ...     cut_middle_to_width("Latino_Hispanic", 9),
    ...     cut_middle_to_width("李明李明李明", 8),
    ...     cut_middle_to_width("Black", 9),
    ... )
    ('Latino…ic', '李明…明', 'Black')
    """
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    ellipsis = "…" if to_terminal_encoding("…") == "…" else ".."
    n_tail = max((width - len(ellipsis)) // 3, 1)
    n_head = width - len(ellipsis) - n_tail
    head = next((text[:i] for i in range(len(text), -1, -1) if cell_len(text[:i]) <= n_head), "")
    tail = next((text[i:] for i in range(len(text) + 1) if cell_len(text[i:]) <= n_tail), "")
    return head + ellipsis + tail


def pad_to_width(text: str, width: int, *, is_right_aligned: bool = False) -> str:
    """Fill a text with blanks up to so many columns of a screen."""
    from rich.cells import cell_len

    blanks = " " * max(width - cell_len(text), 0)
    return blanks + text if is_right_aligned else text + blanks


def cut_end_to_width(text: str, width: int) -> Text:
    """Cut the end of a text that is wider than so many columns of a screen."""
    from rich.text import Text

    line = Text(text)
    line.truncate(width, overflow="ellipsis")
    return line
