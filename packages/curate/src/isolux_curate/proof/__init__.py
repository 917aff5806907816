"""Proof that nothing of a person remains below folders: a search of every byte, and of images.

One module encodes names in every way that files write them, one reads text as its reader sees it,
one unpacks files, one reads pictures' metadata and one the cells of tables, one explains which
files cannot be searched, and one runs the search. Copies of images are recognised by thumbnails.
"""
