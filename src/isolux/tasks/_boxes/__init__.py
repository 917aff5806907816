"""Boxes given to people: what detection, segmentation, keypoints and face detection share."""
