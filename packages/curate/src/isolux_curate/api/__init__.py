"""The commands and public functions: one file or folder each."""
