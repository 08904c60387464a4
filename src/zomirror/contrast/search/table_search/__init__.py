"""The search over the columns of a table: one file for each part of it."""
