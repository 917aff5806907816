"""Annotation: units become tasks of five stages, people answer them in a server, answers come back.

The stages and their rules are FACET's (Gustafson et al. 2023, section 5.2, appendices A.2, A.3 and
C.1). The server is Label Studio; labs without one take the same tasks and answers as tables.
"""

from __future__ import annotations

from isolux.vocabulary.extras import needed

needed("sqlalchemy", package="SQLAlchemy", extra="curate", purpose="annotation in a project")

from isolux.curation.annotation.answers import read_answers  # noqa: E402
from isolux.curation.annotation.exchange import Pulled, Pushed, pull, push  # noqa: E402  # noqa: E402
from isolux.curation.annotation.server import Server  # noqa: E402
from isolux.curation.annotation.sheets import read_given, write_answers, write_tasks  # noqa: E402
from isolux.curation.annotation.stages import STAGES, Stage  # noqa: E402
from isolux.curation.annotation.tasks import plan  # noqa: E402
from isolux.curation.annotation.training import (  # noqa: E402
    examine,
    golden,
    graduate,
    know_raters,
    raters,
)

__all__ = [
    "STAGES", "Pulled", "Pushed", "Server", "Stage", "examine", "golden", "graduate", "know_raters",
    "plan", "pull", "push", "raters", "read_answers", "read_given", "write_answers", "write_tasks",
]  # fmt: skip
