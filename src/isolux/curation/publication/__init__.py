"""What of a project is published: photos that passed and may be, people in them, splits by subject.

From a project to tables; ``isolux.verbs.release`` writes them with the papers that go along.
"""

from __future__ import annotations

from isolux.curation.publication.chosen import Chosen, chosen_photos
from isolux.curation.publication.people import Published, published_people
from isolux.curation.publication.settling import Settled, settled_answers
from isolux.curation.publication.splits import read_shares, split_by_subject, together

__all__ = [
    "Chosen", "Published", "Settled", "chosen_photos", "published_people", "read_shares",
    "settled_answers", "split_by_subject", "together",
]  # fmt: skip
