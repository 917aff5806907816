"""People in images, as boxes: a scene, detectors that find them, the true recall of every group."""
