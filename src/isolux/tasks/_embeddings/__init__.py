"""Vectors of images: what retrieval, identification and face verification share."""
