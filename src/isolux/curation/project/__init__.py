"""A project: one folder, one database, one journal; every step of curation reads and writes here.

::

    project.yaml      its name, where its database is, the settings of its rules
    project.sqlite    the tables (or a PostgreSQL that project.yaml names)
    journal.key       the key that signs the journal's rows
    consent.jsonl     the ledger of consent, where there is one
    photos/           copies of what was sent in, named by the hash of their bytes

A step reads what stands, decides, and writes its verdicts with one row of the journal for each
rule, in one transaction. What was decided already is not decided twice, so every command can be
given again: after a kill, a full disk, a database that was stopped.
"""

from __future__ import annotations

from isolux.vocabulary.extras import needed

needed("sqlalchemy", package="SQLAlchemy", extra="curate", purpose="a project of curation")

from isolux.curation.project.decisions import came_in, decide, listed, note, refuse_held, standing  # noqa: E402  # noqa: E402
from isolux.curation.project.folder import (  # noqa: E402  # noqa: E402
    Project,
    check_journal,
    create,
    open_project,
    read_journal,
)
from isolux.curation.project.reading import (  # noqa: E402  # noqa: E402
    find_revoked_photos,
    first_reasons,
    funnel,
    left_out,
    read_bystanders,
    read_consent,
    read_images,
    read_instances,
    read_subjects,
    read_table,
)

__all__ = [
    "Project",
    "came_in",
    "check_journal",
    "create",
    "decide",
    "find_revoked_photos",
    "first_reasons",
    "funnel",
    "left_out",
    "listed",
    "note",
    "open_project",
    "read_bystanders",
    "read_consent",
    "read_images",
    "read_instances",
    "read_journal",
    "read_subjects",
    "read_table",
    "refuse_held",
    "standing",
]
