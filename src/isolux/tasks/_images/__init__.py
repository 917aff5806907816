"""Comparison of generated images with originals, for reconstruction and super-resolution."""
