"""What a search may change, and what the model then sees."""
