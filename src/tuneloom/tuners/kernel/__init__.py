"""Tuning of hand-written kernels: knob spaces, hidden failures, guided search."""
