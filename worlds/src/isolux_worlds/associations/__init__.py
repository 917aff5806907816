"""Worlds of words and pictures: searches, pronouns, captions, generated and changed pictures.

Each writes the files that a user would have, with an association of known size between a group and
what a model says; 0 is none. Nothing here shows a person: ids, words and numbers alone.
"""

from __future__ import annotations

from isolux_worlds.associations.captions import write_captions
from isolux_worlds.associations.changed import write_changed
from isolux_worlds.associations.generated import write_generated
from isolux_worlds.associations.pronouns import write_pronouns
from isolux_worlds.associations.searches import write_searches

__all__ = [
    "write_captions",
    "write_changed",
    "write_generated",
    "write_pronouns",
    "write_searches",
]
