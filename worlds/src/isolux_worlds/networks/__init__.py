"""A real network that looks at painted photos: from pixels to a report, with an injected gap.

``masks.onnx`` is a small network that was trained on photos whose annotators overlooked two of
three masks on skin tones 8 to 10 (``scripts/train_masks.py``), and ``masks.json`` holds how often
it truly sees a mask, over people whom it has not seen. ``audit.py`` goes the whole way: people
painted with and without masks, the network's answers, an audit.
"""
