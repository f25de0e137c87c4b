"""Attention as one kernel: scores stay in registers, and softmax runs along while keys are read."""
