"""Rows of tables: columns, their rules, and frames of every kind."""
