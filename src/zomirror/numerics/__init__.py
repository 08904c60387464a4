"""Arrays, elementary functions and random bits whose results are the same on every machine, and the compiled loops."""
