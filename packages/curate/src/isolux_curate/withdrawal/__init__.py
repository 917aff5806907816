"""Withdrawal: everything that holds a person is found, taken out and written down.

``terms`` knows what names a person, ``gathering`` and ``project_rows`` find it, ``planning`` brings
that together, ``rewriting`` takes it out of a file of each format and ``changing`` of all of them,
``progress`` keeps the place, ``receipt`` tells what was done, and ``withdrawing`` is the order of
all that. Source: FHIBE (Sony AI 2025), Methods, "Consent revocation".
"""
