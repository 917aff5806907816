"""What every package shares: errors, tables, settings, plugins and how they are found."""
