"""MATLAB files, checked before a reader sees them."""
