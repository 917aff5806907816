"""Intake: photos come in, and rules say which of them can be taken.

Rules are plugins in ``rules/``; other packages add theirs as entry points ``isolux.rules``. Each
writes its verdicts with a row of the journal, so that giving the command again, or with another
setting, changes what is decided otherwise and nothing else.
"""

from __future__ import annotations

from isolux.vocabulary.extras import needed

needed("sqlalchemy", package="SQLAlchemy", extra="curate", purpose="a project of curation")

from isolux.curation.intake.arrival import Added, add, bring_in  # noqa: E402
from isolux.curation.intake.judging import Judged, judge, letters  # noqa: E402

__all__ = ["Added", "Judged", "add", "bring_in", "judge", "letters"]
