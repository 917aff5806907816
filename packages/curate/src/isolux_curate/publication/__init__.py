"""Select what is published: eligible photos, the people in them, splits by subject.

From a project to tables; ``isolux_curate.api.release`` writes them with their documents.
"""
