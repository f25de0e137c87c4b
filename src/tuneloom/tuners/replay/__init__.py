"""Recorded spaces as devices: tuning on them takes milliseconds."""
