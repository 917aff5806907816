"""From a run's tables to a document that people decide by."""
