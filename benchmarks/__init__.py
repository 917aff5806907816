"""Ratios against the peers on the same data in one run; `python -m benchmarks.NAME [--quick]`.

Every program prints its figures and, as its last line, one JSON object. `python -m benchmarks`
runs them all and writes RESULTS.md.
"""
