"""Annotation: units become tasks of five stages, people answer them in a server, answers come back.

The stages and their rules are FACET's (Gustafson et al. 2023, section 5.2, appendices A.2, A.3 and
C.1). The server is Label Studio; labs without one take the same tasks and answers as tables.
"""
