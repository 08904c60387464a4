"""What can be asked of an explanation, described once: for the command line, the model server and the studio."""
