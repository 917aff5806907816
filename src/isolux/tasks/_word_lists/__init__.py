"""Words for people in texts: lists as files with their source, and who is mentioned."""
