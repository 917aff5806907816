"""Proof that nothing of a person is left below folders: a search of every byte, and of pictures.

``needles`` knows how a name is written, ``unpacking`` what is packed in a file, ``blind`` into
what no search can look. What a photo looks like, ``withdrawal.looks`` knows.
"""
