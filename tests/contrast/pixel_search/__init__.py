"""Tests of the search with few pixels."""
