"""A project: one folder, one database, one journal; every step of curation reads and writes here.

::

    project.yaml      its name, where its database is, the settings of its rules and publications
    project.sqlite    the tables (or a PostgreSQL that project.yaml names)
    journal.key       the key that signs the journal's rows
    consent.jsonl     the ledger of consent, where there is one
    photos/           copies of what was sent in, named by the hash of their bytes

A step reads the current photos and people, decides, and writes its verdicts with one row of the
journal for each rule, in one transaction. Repeating a step writes nothing new, so every command can
be run again after an interruption (a killed process, a full disk, a stopped database).
"""
