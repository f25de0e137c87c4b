"""From a convolution and its knobs to a program."""
