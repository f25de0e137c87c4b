"""Kernels that people write by hand."""

from sections.drawing import Section, as_it_is, drawn_by

SECTIONS = (
    Section(
        results="kernel_gpu.json",
        title="Kernels on a GPU",
        about="A sum of 2²⁶ floats in CUDA C and a product of 4096³ halves in Triton, on an H200. "
        "`plain` is the default search, `chance` the random one. Medians over seeds.",
        command="benchmarks/gpu_kernels.py",
        draw=drawn_by("gpu_kernels.py", "--table"),
    ),
    Section(
        results="kernel_c_matmul.json",
        title="A matrix product in C",
        about="A blocked product with knobs against its naive form, tuned on this machine.",
        command="benchmarks/c_matmul.py",
        draw=as_it_is,
    ),
)
