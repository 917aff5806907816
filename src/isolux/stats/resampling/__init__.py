"""Bootstrap replicates of any statistic, for all groups on the same resampled clusters.

Groups that share people see the same weights, so their differences have the right variance; a
metric of two models on the same people likewise.
"""
