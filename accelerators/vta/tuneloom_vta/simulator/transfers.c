/* 2D strided transfers between memory and scratchpads, with zeros around what is loaded. */
#include <string.h>

#include "vta.h"

static int64_t depth_of(const Config *config, int memory) {
  switch (memory) {
    case MEM_UOP: return config->uop_depth;
    case MEM_INP: return config->inp_depth;
    case MEM_WGT: return config->wgt_depth;
    default: return config->acc_depth;
  }
}

/* Bytes of an element in memory; the scratchpad of sums keeps 32 bits whatever is loaded. */
int64_t element_bytes(const Config *config, int memory) {
  switch (memory) {
    case MEM_UOP: return 4;
    case MEM_INP: return config->batch * config->block_in;
    case MEM_WGT: return config->block_out * config->block_in;
    case MEM_ACC: return 4 * config->batch * config->block_out;
    default: return config->batch * config->block_out;
  }
}

static int64_t width_of(const Instruction *it) { return it->x_before + it->x_size + it->x_after; }

static bool is_empty(const Instruction *it) { return it->x_size == 0; }

static int check_memory(const Machine *machine, const Instruction *it) {
  int64_t bytes = element_bytes(machine->config, it->memory);
  int64_t first = it->dram * bytes, stride = it->x_stride * bytes;
  int64_t last = first + (it->y_size > 0 ? it->y_size - 1 : 0) * stride + it->x_size * bytes;
  if (first % machine->config->align_bytes) return MISALIGNED;
  if (it->y_size > 1 && stride % machine->config->align_bytes) return MISALIGNED;
  return last > machine->dram_bytes ? OUTSIDE_MEMORY : OK;
}

int check_transfer(const Machine *machine, const Instruction *it) {
  if (is_empty(it)) return OK;
  bool stores = it->op == OP_STORE;
  if (it->memory >= MEMORIES || (it->memory == MEM_OUT) != stores) return BAD_INSTRUCTION;
  if (stores && (it->y_before || it->y_after || it->x_before || it->x_after)) return BAD_INSTRUCTION;
  int64_t height = it->y_before + it->y_size + it->y_after;
  if (it->sram + width_of(it) * height > depth_of(machine->config, it->memory))
    return it->memory == MEM_UOP ? MICRO_OPS_EXCEEDED : SCRATCHPAD_OVERFLOW;
  return check_memory(machine, it);
}

/* A transfer waits for its latency and for the one channel to memory; zeros are written one a cycle. */
int64_t transfer_end(Machine *machine, const Instruction *it, int64_t start) {
  const Config *config = machine->config;
  int64_t ready = start + config->issue_cycles;
  if (is_empty(it)) return ready;
  int64_t bytes = element_bytes(config, it->memory) * it->x_size;
  int64_t beats = (bytes + config->bus_bytes - 1) / config->bus_bytes;
  int64_t zeros = width_of(it) * (it->y_before + it->y_after) + (it->x_before + it->x_after) * it->y_size;
  int64_t begin = ready + config->latency_cycles;
  if (begin < machine->channel_free) begin = machine->channel_free;
  machine->channel_free = begin + it->y_size * (beats + config->row_cycles);
  machine->report->bytes[it->memory] += bytes * it->y_size;
  return machine->channel_free + zeros;
}

static void widen(int32_t *to, const int8_t *from, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] = from[i];
}

void load(Machine *machine, const Instruction *it) {
  if (is_empty(it) || (!machine->with_data && it->memory != MEM_UOP)) return;
  const Config *config = machine->config;
  uint8_t *pads[MEMORIES] = {(uint8_t *)machine->uop, (uint8_t *)machine->wgt, (uint8_t *)machine->inp,
                             (uint8_t *)machine->acc, NULL, (uint8_t *)machine->acc};
  bool wide = it->memory == MEM_ACC8;
  int64_t from_bytes = element_bytes(config, it->memory);
  int64_t bytes = wide ? 4 * from_bytes : from_bytes;
  uint8_t *to = pads[it->memory] + it->sram * bytes;
  const uint8_t *from = machine->dram + it->dram * from_bytes;
  int64_t height = it->y_before + it->y_size + it->y_after;
  if (width_of(it) > it->x_size || height > it->y_size) memset(to, 0, (size_t)(width_of(it) * height * bytes));
  to += (width_of(it) * it->y_before + it->x_before) * bytes;
  for (int64_t y = 0; y < it->y_size; y++) {
    if (wide) widen((int32_t *)to, (const int8_t *)from, it->x_size * from_bytes);
    else if (it->memory == MEM_WGT) load_weights(config, (int8_t *)to, (const int8_t *)from, it->x_size);
    else memcpy(to, from, (size_t)(it->x_size * bytes));
    to += width_of(it) * bytes;
    from += it->x_stride * from_bytes;
  }
  if (it->memory == MEM_UOP) unpack(machine, it->sram, it->sram + width_of(it) * height);
}

/* Stores the elements `begin` to `end` of the transfer: the low eight bits of each sum. */
void store(Machine *machine, const Instruction *it, int64_t begin, int64_t end) {
  if (!machine->with_data) return;
  int64_t lanes = machine->config->batch * machine->config->block_out;
  for (int64_t i = begin; i < end; i++) {
    int64_t y = i / it->x_size, x = i % it->x_size;
    const int32_t *from = machine->acc + (it->sram + i) * lanes;
    int8_t *to = (int8_t *)machine->dram + (it->dram + y * it->x_stride + x) * lanes;
    for (int64_t lane = 0; lane < lanes; lane++) to[lane] = (int8_t)(uint32_t)from[lane];
  }
}
