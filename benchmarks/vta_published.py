"""The published functional simulator of VTA, compiled from a checkout of its repository."""

import ctypes
import json
import subprocess
from pathlib import Path

_OF_TVM = {
    "tvm/runtime/registry.h": """
#include <dmlc/logging.h>
#include <string>
namespace tvm { namespace runtime {
struct TVMArgs { struct Any { template <typename T> operator T() const { return T(); } };
                 Any operator[](int) const { return Any(); } };
struct TVMRetValue { template <typename T> void operator=(const T&) {} };
struct Nowhere { template <typename F> Nowhere& set_body(F) { return *this; } };
} }
using tvm::runtime::Nowhere;
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TVM_REGISTER_GLOBAL(name) static Nowhere JOIN(nowhere, __COUNTER__) = Nowhere()
""",
    "dmlc/logging.h": """
#pragma once
#include <sstream>
#include <stdexcept>
struct Fatal { std::ostringstream text; std::ostream& stream() { return text; }
               ~Fatal() noexcept(false) { throw std::runtime_error(text.str()); } };
#define FATAL 0
#define LOG(level) Fatal().stream()
#define CHECK(x) if (!(x)) Fatal().stream() << #x
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_NE(a, b) CHECK((a) != (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
""",
    "run.cc": """
#include "src/sim/sim_tlpp.cc"
#include "src/vmem/virtual_memory.cc"
#include "src/sim/sim_driver.cc"
extern "C" int run_published(const void* words, int64_t count, void* memory, int64_t bytes) {
  static VTADeviceHandle device = VTADeviceAlloc();
  const uint32_t each[] = {VTA_UOP_ELEM_BYTES, VTA_WGT_ELEM_BYTES, VTA_INP_ELEM_BYTES, VTA_ACC_ELEM_BYTES,
                           VTA_OUT_ELEM_BYTES, VTA_OUT_ELEM_BYTES};
  void *ram = VTAMemAlloc(bytes, 0), *code = VTAMemAlloc(count * sizeof(VTAGenericInsn), 0);
  memcpy(ram, memory, bytes);
  memcpy(code, words, count * sizeof(VTAGenericInsn));
  auto* transfer = static_cast<VTAMemInsn*>(code);
  for (int64_t n = 0; n < count; ++n)
    if (transfer[n].opcode == VTA_OPCODE_LOAD || transfer[n].opcode == VTA_OPCODE_STORE)
      transfer[n].dram_base += VTAMemGetPhyAddr(ram) / each[transfer[n].memory_type];
  int failed = 0;
  try { failed = VTADeviceRun(device, VTAMemGetPhyAddr(code), count, 1u << 30); }
  catch (const std::exception& error) { fprintf(stderr, "%s\\n", error.what()); failed = 2; }
  memcpy(memory, ram, bytes);
  VTAMemFree(ram);
  VTAMemFree(code);
  return failed;
}
""",
}


def published(checkout: Path, folder: Path) -> ctypes.CDLL:
    """The published simulator with its own sizes, compiled."""
    for name, text in _OF_TVM.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    sizes = json.loads((checkout / "config" / "fsim_sample.json").read_text())
    sizes |= {"LOG_BLOCK_IN": sizes["LOG_BLOCK"], "LOG_BLOCK_OUT": sizes["LOG_BLOCK"]}
    sizes |= {"LOG_OUT_WIDTH": sizes["LOG_INP_WIDTH"], "LOG_OUT_BUFF_SIZE": sizes["LOG_ACC_BUFF_SIZE"] - 2}
    given = [f"-DVTA_{name}={value}" for name, value in sizes.items() if name.startswith("LOG_")]
    places = [f"-I{folder}", f"-I{checkout}", f"-I{checkout / 'include'}"]
    made = folder / "published.so"
    flags = ["-std=c++14", "-O1", "-w", "-fPIC", "-shared", "-o", str(made)]
    subprocess.run(["c++", *flags, *given, *places, str(folder / "run.cc")], check=True)
    return ctypes.CDLL(str(made))
