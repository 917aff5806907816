"""Words of people in what a model wrote: lists as files with their source, and who is mentioned."""
