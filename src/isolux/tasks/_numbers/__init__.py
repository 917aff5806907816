"""Tasks of one number per unit: matching numbers to people, and errors."""
