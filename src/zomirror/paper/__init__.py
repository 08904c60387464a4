"""The experiments of the paper: what is run, how it is run and kept, what it shows; figures never compute."""
