"""Intake: photos come in, and rules say which of them can be taken.

Rules are plugins in ``rules/``; other packages add theirs as entry points ``isolux.rules``. Each
writes its verdicts with a row of the journal, so that giving the command again, or with another
setting, changes what is decided otherwise and nothing else.
"""
