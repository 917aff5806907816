"""Proof that nothing of a person remains below folders: a search of every byte, and of images.

One module encodes names in every way that files write them and recognises unsearchable files, one
unpacks files, and one runs the search. Copies of images are recognised by thumbnails.
"""
