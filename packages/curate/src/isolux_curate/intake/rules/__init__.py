"""Rules of intake: which photos are refused, in words that can be sent to the person.

One file a rule. Its ``refuse`` takes the facts of photos, one row a subject in a photo, and gives
the photos that it refuses, each with its reason. Numbers are FHIBE's unless said otherwise (Sony AI
2025, Methods, "Image collection guidelines"); ``project.yaml`` changes them by name.
"""
