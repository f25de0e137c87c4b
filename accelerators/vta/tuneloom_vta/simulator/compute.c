/* Micro-ops in two nested loops: products with sums, and operations on sums. */
#include <string.h>

#include "vta.h"

#ifdef __ARM_FEATURE_DOTPROD
#include <arm_neon.h>
#endif

void unpack(Machine *machine, int64_t begin, int64_t end) {
  const Config *config = machine->config;
  int64_t middle = config->acc_bits > config->inp_bits ? config->acc_bits : config->inp_bits;
  for (int64_t i = begin; i < end; i++) {
    uint64_t word = machine->uop[i];
    machine->places[i].dst = (int64_t)(word & ((1u << config->acc_bits) - 1));
    machine->places[i].src = (int64_t)((word >> config->acc_bits) & ((1u << middle) - 1));
    machine->places[i].wgt = (int64_t)((word >> (config->acc_bits + middle)) & ((1u << config->wgt_bits) - 1));
  }
}

static int64_t larger(int64_t one, int64_t other) { return one > other ? one : other; }

/* Factors are never negative, so the last iteration reaches farthest. */
int check_compute(const Machine *machine, const Instruction *it) {
  const Config *config = machine->config;
  if (it->uop_end > config->uop_depth) return MICRO_OPS_EXCEEDED;
  if (it->op == OP_ALU && it->alu > ALU_MUL) return BAD_INSTRUCTION;
  if (!it->outer || !it->inner || it->uop_begin >= it->uop_end) return OK;
  Place most = {0, 0, 0};
  for (int64_t k = it->uop_begin; k < it->uop_end; k++) {
    Place place = machine->places[k];
    most = (Place){larger(most.dst, place.dst), larger(most.src, place.src), larger(most.wgt, place.wgt)};
  }
  most.dst += (it->outer - 1) * it->dst_outer + (it->inner - 1) * it->dst_inner;
  most.src += (it->outer - 1) * it->src_outer + (it->inner - 1) * it->src_inner;
  most.wgt += (it->outer - 1) * it->wgt_outer + (it->inner - 1) * it->wgt_inner;
  if (most.dst >= config->acc_depth) return SCRATCHPAD_OVERFLOW;
  if (it->op == OP_ALU) return !it->immediate && most.src >= config->acc_depth ? SCRATCHPAD_OVERFLOW : OK;
  if (it->reset) return OK;
  return most.src >= config->inp_depth || most.wgt >= config->wgt_depth ? SCRATCHPAD_OVERFLOW : OK;
}

static int64_t micro_ops(const Instruction *it) {
  return it->uop_end > it->uop_begin ? (it->uop_end - it->uop_begin) * it->outer * it->inner : 0;
}

int64_t compute_end(const Machine *machine, const Instruction *it, int64_t start) {
  const Config *config = machine->config;
  int64_t each = it->op == OP_ALU ? config->alu_cycles : config->gemm_cycles;
  if (it->op == OP_ALU) machine->report->alus += micro_ops(it);
  else if (it->op == OP_GEMM && !it->reset) machine->report->gemms += micro_ops(it);
  return start + config->issue_cycles + (it->op == OP_FINISH ? 0 : config->sum_latency + each * micro_ops(it));
}

static inline void product(int32_t *sum, const int32_t *before, const int8_t *inp, const int8_t *wgt, int64_t batch,
                           int64_t block_out, int64_t block_in) {
  for (int64_t b = 0; b < batch; b++)
    for (int64_t o = 0; o < block_out; o++) {
      int32_t dot = 0;
      for (int64_t k = 0; k < block_in; k++) dot += (int32_t)inp[b * block_in + k] * wgt[o * block_in + k];
      sum[b * block_out + o] = (int32_t)((uint32_t)before[b * block_out + o] + (uint32_t)dot);
    }
}

#ifdef __ARM_FEATURE_DOTPROD
static int32x4_t four_dots(int8x16_t inp, const int8_t *wgt) {
  int32x4_t dots[4];
  for (int i = 0; i < 4; i++) dots[i] = vdotq_s32(vdupq_n_s32(0), inp, vld1q_s8(wgt + 16 * i));
  return vpaddq_s32(vpaddq_s32(dots[0], dots[1]), vpaddq_s32(dots[2], dots[3]));
}

static inline void product_16(int32_t *sum, const int32_t *before, const int8_t *inp, const int8_t *wgt) {
  int8x16_t row = vld1q_s8(inp);
  for (int i = 0; i < 16; i += 4) vst1q_s32(sum + i, vaddq_s32(vld1q_s32(before + i), four_dots(row, wgt + 16 * i)));
}
#else
static inline void product_16(int32_t *sum, const int32_t *before, const int8_t *inp, const int8_t *wgt) {
  product(sum, before, inp, wgt, 1, 16, 16);
}
#endif

static inline void any_product(const Config *config, int32_t *sum, const int32_t *before, const int8_t *inp,
                               const int8_t *wgt) {
  if (config->batch == 1 && config->block_out == 16 && config->block_in == 16) product_16(sum, before, inp, wgt);
  else product(sum, before, inp, wgt, config->batch, config->block_out, config->block_in);
}

static int32_t operated(int alu, int32_t one, int32_t other) {
  switch (alu) {
    case ALU_MIN: return one < other ? one : other;
    case ALU_MAX: return one > other ? one : other;
    case ALU_ADD: return (int32_t)((uint32_t)one + (uint32_t)other);
    case ALU_MUL: return (int32_t)((uint32_t)one * (uint32_t)other);
    default: break;
  }
  if (other >= 0) return one >> (other > 31 ? 31 : other);
  return other < -31 ? 0 : (int32_t)((uint32_t)one << -other);
}

static void operate(const Instruction *it, int32_t *dst, const int32_t *src, int64_t lanes) {
  for (int64_t i = 0; i < lanes; i++) dst[i] = operated(it->alu, dst[i], it->immediate ? it->value : src[i]);
}

static void land(Flight *flight, int32_t *acc, int64_t lanes) {
  int64_t slot = flight->oldest % MOST_IN_FLIGHT;
  memcpy(acc + flight->places[slot] * lanes, flight->sums[slot], (size_t)lanes * sizeof(int32_t));
  flight->oldest++;
  flight->count--;
}

static bool in_flight(const Flight *flight, int64_t place) {
  for (int64_t i = 0; i < flight->count; i++)
    if (flight->places[(flight->oldest + i) % MOST_IN_FLIGHT] == place) return true;
  return false;
}

static void stale_product(Machine *machine, Place at, const int8_t *inp, const int8_t *wgt) {
  Flight *flight = machine->flight;
  int64_t lanes = machine->config->batch * machine->config->block_out;
  int64_t slot = (flight->oldest + flight->count) % MOST_IN_FLIGHT;
  machine->report->stale_sums += in_flight(flight, at.dst);
  any_product(machine->config, flight->sums[slot], machine->acc + at.dst * lanes, inp, wgt);
  flight->places[slot] = at.dst;
  flight->count++;
  if (flight->count == machine->config->sum_latency) land(flight, machine->acc, lanes);
}

/* Whether one of the first `window` sums of a round is among the last of the round before, `step` away. */
static bool meets_round_before(const Machine *machine, const Instruction *it, int64_t window, int64_t step) {
  int64_t count = it->uop_end - it->uop_begin;
  const Place *uops = machine->places + it->uop_begin;
  for (int64_t k = 0; k < window; k++)
    for (int64_t back = k + 1; back <= window; back++) {
      int64_t before = uops[count + k - back].dst;
      if (uops[k].dst + step == before) return true;
    }
  return false;
}

static bool collides_in_short_rounds(const Machine *machine, const Instruction *it, int64_t window) {
  int64_t recent[MOST_IN_FLIGHT], at = 0;
  memset(recent, -1, sizeof recent);
  for (int64_t pair = 0; pair < it->outer * it->inner; pair++)
    for (int64_t k = it->uop_begin; k < it->uop_end; k++) {
      int64_t dst = (pair / it->inner) * it->dst_outer + (pair % it->inner) * it->dst_inner;
      dst += machine->places[k].dst;
      for (int64_t i = 0; i < window; i++)
        if (recent[i] == dst) return true;
      recent[at++ % window] = dst;
    }
  return false;
}

/* Whether a sum is read while it is still in flight, anywhere in the loops. */
static bool collides(const Machine *machine, const Instruction *it) {
  int64_t window = machine->config->sum_latency - 1, count = it->uop_end - it->uop_begin;
  if (it->reset || window < 1) return false;
  if (count < window) return collides_in_short_rounds(machine, it, window);
  const Place *uops = machine->places + it->uop_begin;
  for (int64_t k = 0; k < count; k++)
    for (int64_t back = 1; back <= window && back <= k; back++)
      if (uops[k].dst == uops[k - back].dst) return true;
  if (it->inner > 1 && meets_round_before(machine, it, window, it->dst_inner)) return true;
  return it->outer > 1 &&
         meets_round_before(machine, it, window, it->dst_outer - (it->inner - 1) * it->dst_inner);
}

static void gemm(Machine *machine, const Instruction *it, int64_t begin, int64_t end) {
  const Config *config = machine->config;
  int64_t lanes = config->batch * config->block_out;
  int64_t inp_bytes = element_bytes(config, MEM_INP), wgt_bytes = element_bytes(config, MEM_WGT);
  bool stale = begin < end && collides(machine, it);
  for (int64_t pair = begin; pair < end; pair++) {
    int64_t o = pair / it->inner, i = pair % it->inner;
    Place base = {o * it->dst_outer + i * it->dst_inner, o * it->src_outer + i * it->src_inner,
                  o * it->wgt_outer + i * it->wgt_inner};
    for (int64_t k = it->uop_begin; k < it->uop_end; k++) {
      Place at = machine->places[k];
      at = (Place){at.dst + base.dst, at.src + base.src, at.wgt + base.wgt};
      const int8_t *inp = machine->inp + at.src * inp_bytes, *wgt = machine->wgt + at.wgt * wgt_bytes;
      int32_t *sum = machine->acc + at.dst * lanes;
      if (it->reset) memset(sum, 0, (size_t)lanes * sizeof(int32_t));
      else if (stale) stale_product(machine, at, inp, wgt);
      else any_product(config, sum, sum, inp, wgt);
    }
  }
  while (end == it->outer * it->inner && machine->flight->count) land(machine->flight, machine->acc, lanes);
}

static void alu(Machine *machine, const Instruction *it, int64_t begin, int64_t end) {
  int64_t lanes = machine->config->batch * machine->config->block_out;
  for (int64_t pair = begin; pair < end; pair++) {
    int64_t o = pair / it->inner, i = pair % it->inner;
    for (int64_t k = it->uop_begin; k < it->uop_end; k++) {
      Place at = machine->places[k];
      int32_t *dst = machine->acc + (at.dst + o * it->dst_outer + i * it->dst_inner) * lanes;
      int64_t src = it->immediate ? 0 : at.src + o * it->src_outer + i * it->src_inner;
      operate(it, dst, machine->acc + src * lanes, lanes);
    }
  }
}

/* Runs the iterations `begin` to `end` of the two loops taken as one. */
void compute(Machine *machine, const Instruction *it, int64_t begin, int64_t end) {
  if (!machine->with_data || it->uop_begin >= it->uop_end) return;
  if (it->op == OP_GEMM) gemm(machine, it, begin, end);
  if (it->op == OP_ALU) alu(machine, it, begin, end);
}
