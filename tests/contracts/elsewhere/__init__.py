"""Another author's package: one plugin of each kind, a file each, and their samples.

``test_new_plugins`` installs a copy of it and holds every plugin to the contracts. No line of
isolux names any of it.
"""
