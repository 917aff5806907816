"""What an audit says: comparisons chosen as data, and the one place that turns them into words."""
