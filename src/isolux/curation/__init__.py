"""Building a dataset of people well: what annotators answered becomes labels, doubts kept."""
