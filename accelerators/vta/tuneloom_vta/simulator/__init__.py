"""The simulator: instructions in, results and cycles out."""
