"""The people to be judged: loaded, without those who withdrew, kept by ``--only``."""
