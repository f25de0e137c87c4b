"""Programs as objects that the linker puts into a model's library, with the simulator that runs them."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tuneloom_vta.configuration import Configuration
from tuneloom_vta.errors import CompilerError
from tuneloom_vta.schedules.data import data_of
from tuneloom_vta.schedules.program import Program
from tuneloom_vta.schedules.workloads import Convolution
from tuneloom_vta.simulator.device import config_numbers
from tuneloom_vta.simulator.library import compiler, simulator_object

CLOCK = "tuneloom_device_clock"
"""The function by which Tuneloom learns how long the device would have taken."""
_SOURCE = """
#include <stdint.h>
typedef struct {{ const int64_t *config; const uint64_t *words; int64_t count; const void *uops;
                 int64_t uop_bytes, memory_bytes, at[4], sizes[4]; double hertz; }} Kernel;
int tuneloom_vta_kernel(const Kernel *kernel, const void *data, const void *weight, void *results);
__asm__(".section .rodata\\n.balign 16\\n{symbol}_words:\\n.incbin \\"{words}\\"\\n"
        "{symbol}_uops:\\n.incbin \\"{uops}\\"\\n.previous\\n");
extern const uint64_t {symbol}_words[] __attribute__((visibility("hidden")));
extern const uint32_t {symbol}_uops[] __attribute__((visibility("hidden")));
static const int64_t config[] = {{{config}}};
int {symbol}(const void *data, const void *weight, void *results) {{
  static const Kernel kernel = {{config, {symbol}_words, {count}, {symbol}_uops, {uop_bytes}, {memory},
                                {{{places}}}, {{{sizes}}}, {hertz}.0}};
  return tuneloom_vta_kernel(&kernel, data, weight, results);
}}
"""


def objects_of(
    program: Program, workload: Convolution, accelerator: Configuration, symbol: str
) -> tuple[Any, ...]:
    """The program under this symbol, and the simulator, as modules of TVM; raises CompilerError."""
    import tvm

    with tempfile.TemporaryDirectory(prefix="tuneloom-vta-") as folder:
        made = _compiled(Path(folder), program, workload, accelerator, symbol)
        own = tvm.runtime.load_static_library(str(made), [symbol])
    return own, tvm.runtime.load_static_library(str(simulator_object()), [CLOCK])


def _compiled(
    folder: Path, program: Program, workload: Convolution, accelerator: Configuration, symbol: str
) -> Path:
    words, uops, source, made = (folder / name for name in ("words", "uops", "kernel.c", "kernel.o"))
    words.write_bytes(program.words.tobytes())
    uops.write_bytes(program.uops.tobytes())
    data = data_of(workload, accelerator)
    sizes = (program.uops.nbytes, len(data.inputs), len(data.weights), len(data.results))
    text = _SOURCE.format(
        symbol=symbol,
        words=words,
        uops=uops,
        config=", ".join(map(str, config_numbers(accelerator))),
        count=len(program.words),
        uop_bytes=program.uops.nbytes,
        memory=program.memory_bytes,
        places=", ".join(str(program.addresses[name]) for name in ("uop", "inp", "wgt", "out")),
        sizes=", ".join(map(str, sizes)),
        hertz=accelerator.frequency_hz,
    )
    source.write_text(text)
    command = [compiler() or "cc", "-O1", "-fPIC", "-c", "-o", str(made), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerError(f"{command[0]} could not compile a program: {done.stderr.strip()[-300:]}")
    return made
