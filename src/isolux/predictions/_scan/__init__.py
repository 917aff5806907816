"""A scanner of large JSON results: bounded windows, numbers and rows without Python objects."""
