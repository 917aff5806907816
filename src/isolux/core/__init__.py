"""The words that every room shares: errors, tables, settings, plugins and how they are found."""
