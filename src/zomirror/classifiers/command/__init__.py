"""Programs as models: a child process, its framing, the adapter."""
