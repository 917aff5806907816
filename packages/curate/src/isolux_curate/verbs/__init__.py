"""What the commands and the public functions do: one file or folder each."""
