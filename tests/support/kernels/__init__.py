"""Meanings as NumPy computes them, and kernels to hold implementers against."""
