/* The state of a simulated accelerator. Every access to a memory is checked before it is made. */
#ifndef TUNELOOM_VTA_H
#define TUNELOOM_VTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OP_LOAD = 0, OP_STORE = 1, OP_GEMM = 2, OP_FINISH = 3, OP_ALU = 4 };
enum { MEM_UOP = 0, MEM_WGT = 1, MEM_INP = 2, MEM_ACC = 3, MEM_OUT = 4, MEM_ACC8 = 5, MEMORIES = 6 };
enum { ALU_MIN = 0, ALU_MAX = 1, ALU_ADD = 2, ALU_SHR = 3, ALU_MUL = 4 };
enum { LOADER = 0, COMPUTER = 1, STORER = 2, MODULES = 3 };
enum { LOAD_TO_COMPUTE = 0, COMPUTE_TO_LOAD = 1, COMPUTE_TO_STORE = 2, STORE_TO_COMPUTE = 3, TOKENS = 4 };

/* In the order of `Fault` in device.py. */
enum {
  OK = 0,
  BAD_INSTRUCTION = 1,
  SCRATCHPAD_OVERFLOW = 2,
  MICRO_OPS_EXCEEDED = 3,
  OUTSIDE_MEMORY = 4,
  MISALIGNED = 5,
  DEADLOCK = 6,
  WATCHDOG = 7,
  OUT_OF_HOST_MEMORY = 8
};

/* In the order of `_Config` in device.py. Depths are elements; `*_bits` are the widths of index fields. */
typedef struct {
  int64_t batch, block_in, block_out;
  int64_t uop_depth, inp_depth, wgt_depth, acc_depth;
  int64_t uop_bits, inp_bits, wgt_bits, acc_bits;
  int64_t queue_depth, token_depth;
  int64_t bus_bytes, align_bytes, latency_cycles, row_cycles;
  int64_t fetch_cycles, issue_cycles, gemm_cycles, alu_cycles, sum_latency;
  int64_t watchdog_cycles;
} Config;

/* In the order of `_Report` in device.py. */
typedef struct {
  int64_t fault, instruction, cycles;
  int64_t busy[MODULES];
  int64_t bytes[MEMORIES];
  int64_t gemms, alus, stale_sums;
} Report;

/* One decoded instruction; fields of other kinds are zero. */
typedef struct {
  int op, memory;
  bool pop_prev, pop_next, push_prev, push_next, reset, immediate;
  int64_t sram, dram, y_size, x_size, x_stride, y_before, y_after, x_before, x_after;
  int64_t uop_begin, uop_end, outer, inner;
  int64_t dst_outer, dst_inner, src_outer, src_inner, wgt_outer, wgt_inner;
  int alu;
  int32_t value;
  uint64_t key[2]; /* the instruction without its tokens */
} Instruction;

/* What was found out about an instruction, valid as long as the micro-ops stay. */
typedef struct {
  uint64_t key[2];
  int fault;
  bool stale;
} Known;

/* A micro-op: places in the scratchpads before the loops add theirs. */
typedef struct {
  int64_t dst, src, wgt;
} Place;

#define MOST_IN_FLIGHT 16
#define MOST_LANES 1024
#define KNOWN 32

/* Sums on their way through the pipeline: a product that reads one of them reads what was there before. */
typedef struct {
  int64_t oldest, count, places[MOST_IN_FLIGHT];
  int32_t sums[MOST_IN_FLIGHT][MOST_LANES];
} Flight;

typedef struct {
  const Config *config;
  const uint64_t *words;
  int64_t count;
  uint8_t *dram;
  int64_t dram_bytes;
  bool with_data;
  uint32_t *uop;
  Place *places; /* the same micro-ops, unpacked */
  int8_t *inp, *wgt;
  int32_t *acc;
  Flight *flight;
  Known known[KNOWN];
  int64_t known_count;
  int64_t channel_free;
  Report *report;
} Machine;

#ifndef INSIDE
#define INSIDE
#endif

INSIDE int module_of(const uint64_t *words);
INSIDE Instruction decode(const Config *config, const uint64_t *words);

INSIDE int64_t element_bytes(const Config *config, int memory);
INSIDE int check_transfer(const Machine *machine, const Instruction *instruction);
INSIDE int64_t transfer_end(Machine *machine, const Instruction *instruction, int64_t start);
INSIDE void load(Machine *machine, const Instruction *instruction);
INSIDE void store(Machine *machine, const Instruction *instruction, int64_t begin, int64_t end);

INSIDE void load_weights(const Config *config, int8_t *to, const int8_t *from, int64_t count);
INSIDE void unpack(Machine *machine, int64_t begin, int64_t end);
INSIDE int check_compute(Machine *machine, const Instruction *instruction);
INSIDE int64_t compute_end(const Machine *machine, const Instruction *instruction, int64_t start);
INSIDE void compute(Machine *machine, const Instruction *instruction, int64_t begin, int64_t end);

#endif
