"""Convolutions by NVIDIA's cuDNN, which is loaded at run time."""
