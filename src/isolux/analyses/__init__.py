"""Analyses: one file each, from a run's tables to findings."""
