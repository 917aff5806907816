"""Measures of how groups differ, and tests of whether they do: the table ``disparities``."""
