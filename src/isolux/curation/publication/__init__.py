"""What of a project is published: photos that passed and may be, people in them, splits by subject.

From a project to tables; ``isolux.verbs.release`` writes them with the papers that go along.
"""

from __future__ import annotations

from isolux.curation.publication.people import Published, Settled, published_people, settled_answers
from isolux.curation.publication.photos import (
    Chosen,
    chosen_photos,
    read_shares,
    split_by_subject,
    together,
)

__all__ = [
    "Chosen", "Published", "Settled", "chosen_photos", "published_people", "read_shares",
    "settled_answers", "split_by_subject", "together",
]  # fmt: skip
