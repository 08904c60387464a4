"""The experiments of the paper: settings, runs, results, figures, claims, and the training of its networks."""
