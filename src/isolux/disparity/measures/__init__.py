"""Measures of how much an attribute's groups differ: one file each, ``INFO`` and ``measure``.

From the groups' values of one metric to one number, by a formula of ``isolux.disparity.formulas``.
``INFO`` says what the number is called, in which unit it is, which way groups are more alike, and
how its interval is made; the audit, the report and ``isolux list measures`` read nothing else.

To add a measure, write ``disparity/measures/<name>.py``, or in another package a module that an
entry point ``isolux.measures`` names::

    def measure(values, *, overall, ddof, log_base) -> array: ...

``values [..., g]`` are groups' values (NaN: not compared), with bootstrap replicates ``[r, g]``;
what comes back has their leading shape. Of the keywords it takes those that it needs: ``overall
[...]`` (everyone's value, or the reference group's), ``ddof`` and ``log_base`` (as the audit sets
them). Where the interval is that of the ``"largest difference"`` or ``"largest log ratio"``, a
second function ``bounds(low, high)`` turns the bounds of that into the measure's own; a measure
without it is that difference or log ratio itself. Pairs of groups, tests and the noise-corrected
SD are more than formulas: they are described in ``isolux.disparity.measure_registry``.
"""
