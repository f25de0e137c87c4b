"""Products by NVIDIA's cuBLASLt, which is loaded at run time."""
