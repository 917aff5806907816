"""Vectors of pictures: what retrieval, identification and face verification share."""
