"""Models: one file a family, with ``INFO`` and ``load(spec, ...)``; perceptual distances too.

PyTorch and its like are imported here, and only when a model is loaded. Nothing is downloaded:
weights are files that are already on the machine.
"""
