"""Boxes, masks, keypoints and their matching: arrays in, arrays out.

From predictions to matches in two steps. ``boxes.box_pairs_xywh``, ``masks.mask_pairs`` or
``keypoints.keypoint_pairs`` finds the pairs of a detection and a person that overlap enough, once;
``matching.match`` matches detections to people at every threshold, from those pairs alone.
"""
