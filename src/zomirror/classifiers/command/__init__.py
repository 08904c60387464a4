"""Programs as models: the child process, the encoding of batches and answers, the adapter."""
