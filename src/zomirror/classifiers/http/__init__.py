"""Models behind HTTP: transport with deadlines, payload formats, the adapter."""
