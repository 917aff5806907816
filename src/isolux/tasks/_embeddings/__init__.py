"""Vectors of pictures: what retrieval and face verification share."""
