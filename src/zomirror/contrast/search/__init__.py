"""The search for an explanation: one file for each stage."""
