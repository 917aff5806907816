"""One label a person, from any table: what the formats of tables share."""
