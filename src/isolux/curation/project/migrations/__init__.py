"""Versions of the project's tables, one file a change, in the order of their numbers.

A file is never changed once it was released: a change of ``tables.py`` is a new one, and a test
holds what they make to ``tables.py``.
"""
