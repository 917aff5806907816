"""The commands that isolux-worlds adds to the program ``isolux``."""
