"""An imaginary accelerator that multiplies matrices; a C function on the CPU plays its part."""
