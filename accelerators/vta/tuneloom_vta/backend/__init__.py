"""VTA as a backend: int8 convolutions and products run on it, the rest on the CPU beside it."""
