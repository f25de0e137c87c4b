"""A kernel in C with one knob, described in a file as `tuneloom kernel tune` reads it."""

from pathlib import Path

SOURCE = """
void scale(const float *x, float *y, int n)
{
    for (int i = 0; i < n; i += STEP)
        for (int j = 0; j < STEP && i + j < n; j++)
            y[i + j] = 3 * x[i + j];
}
"""
DESCRIPTION = """
[kernel]
language = "c"
source = "conv.c"
entry = "scale"
[knobs]
STEP = [1, 2, 4, 8]
[[arguments]]
type = "float32"
shape = [4096]
[[arguments]]
type = "float32"
shape = [4096]
output = true
[[arguments]]
type = "int32"
value = 4096
"""


def write_c_kernel(folder: Path) -> None:
    """Write `conv.c`, and `conv.toml` with its four configurations."""
    (folder / "conv.c").write_text(SOURCE)
    (folder / "conv.toml").write_text(DESCRIPTION)
