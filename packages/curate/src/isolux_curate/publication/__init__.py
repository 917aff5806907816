"""What of a project is published: photos that passed and may be, people in them, splits by subject.

From a project to tables; ``isolux_curate.verbs.release`` writes them with the papers that go along.
"""
