"""What runs a bundle: used by Tuneloom, and joined to one file, `run.py`, in every bundle.

Bundles run without Tuneloom, so modules here import each other, the standard library and NumPy; runtimes are
imported inside functions.
"""
