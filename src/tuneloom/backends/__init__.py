"""One package for each kind of hardware."""
