/* The simulator as one object that every kernel of a model brings along: the linker keeps one of them. */
#define INSIDE static

#include "vta.h"

static void tuneloom_vta_run(const Config *config, const uint64_t *words, int64_t count, uint8_t *dram,
                             int64_t dram_bytes, int64_t with_data, Report *report);

#include "decode.c"
#include "transfers.c"
#include "compute.c"
#include "device.c"

#include <time.h>

enum { UOPS = 0, DATA = 1, WEIGHTS = 2, RESULTS = 3, PARTS = 4 };

typedef struct {
  const Config *config;
  const uint64_t *words;
  int64_t count;
  const void *uops;
  int64_t uop_bytes, memory_bytes, at[PARTS], sizes[PARTS];
  double hertz;
} Kernel;

/* How many seconds the device took more than this process did; weak, so that all kernels share it. */
__attribute__((weak)) double tuneloom_vta_ahead_s;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

__attribute__((weak)) int tuneloom_vta_kernel(const Kernel *kernel, const void *data, const void *weights,
                                              void *results) {
  double began = now();
  uint8_t *memory = calloc((size_t)kernel->memory_bytes, 1);
  if (!memory) return OUT_OF_HOST_MEMORY;
  const void *given[] = {kernel->uops, data, weights};
  for (int part = UOPS; part <= WEIGHTS; part++)
    memcpy(memory + kernel->at[part], given[part], (size_t)kernel->sizes[part]);
  Report report;
  tuneloom_vta_run(kernel->config, kernel->words, kernel->count, memory, kernel->memory_bytes, 1, &report);
  memcpy(results, memory + kernel->at[RESULTS], (size_t)kernel->sizes[RESULTS]);
  free(memory);
  tuneloom_vta_ahead_s += (double)report.cycles / kernel->hertz - (now() - began);
  return (int)report.fault;
}

/* A value of TVM's interface for functions: a kind of type, and the number. */
typedef struct {
  int32_t type;
  uint32_t unused;
  double number;
} Value;
enum { A_FLOAT = 3 };

__attribute__((weak, visibility("default"))) int __tvm_ffi_tuneloom_device_clock(void *self, const Value *values,
                                                                                 int32_t count, Value *result) {
  (void)self, (void)values, (void)count;
  *result = (Value){A_FLOAT, 0, tuneloom_vta_ahead_s};
  return 0;
}
