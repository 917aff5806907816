"""Statistics over evidence and weights: resampling, intervals, tests."""
