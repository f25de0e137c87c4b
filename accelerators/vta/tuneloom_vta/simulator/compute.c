/* Micro-ops in two nested loops: products with sums, and operations on sums. */
#include <string.h>

#include "vta.h"

#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#elif defined(__AVX512BW__)
#include <immintrin.h>
#endif

void unpack(Machine *machine, int64_t begin, int64_t end) {
  const Config *config = machine->config;
  int64_t middle = config->acc_bits > config->inp_bits ? config->acc_bits : config->inp_bits;
  machine->known_count = 0;
  for (int64_t i = begin; i < end; i++) {
    uint64_t word = machine->uop[i];
    machine->places[i].dst = (int64_t)(word & ((1u << config->acc_bits) - 1));
    machine->places[i].src = (int64_t)((word >> config->acc_bits) & ((1u << middle) - 1));
    machine->places[i].wgt = (int64_t)((word >> (config->acc_bits + middle)) & ((1u << config->wgt_bits) - 1));
  }
}

static int64_t larger(int64_t one, int64_t other) { return one > other ? one : other; }

/* Factors are never negative, so the last iteration reaches farthest. */
static int checked_compute(const Machine *machine, const Instruction *it) {
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

static bool is_published(const Config *config) {
  return config->batch == 1 && config->block_out == 16 && config->block_in == 16;
}

#if defined(__ARM_FEATURE_DOTPROD)
/* Blocks of weights are kept as the instruction reads them: four inputs of all outputs behind each other. */
void load_weights(const Config *config, int8_t *to, const int8_t *from, int64_t count) {
  if (!is_published(config)) {
    memcpy(to, from, (size_t)(count * element_bytes(config, MEM_WGT)));
    return;
  }
  for (int64_t quarter = 0; quarter < 4 * count; quarter++) {
    int32x4x4_t four = vld4q_s32((const int32_t *)(from + 64 * quarter));
    int32_t *place = (int32_t *)to + 64 * (quarter / 4) + 4 * (quarter % 4);
    for (int k = 0; k < 4; k++) vst1q_s32(place + 16 * k, four.val[k]);
  }
}

static inline int32x4_t four_sums(int32x4_t sum, const int8_t *wgt, int8x16_t row) {
  sum = vdotq_laneq_s32(sum, vld1q_s8(wgt), row, 0);
  sum = vdotq_laneq_s32(sum, vld1q_s8(wgt + 64), row, 1);
  sum = vdotq_laneq_s32(sum, vld1q_s8(wgt + 128), row, 2);
  return vdotq_laneq_s32(sum, vld1q_s8(wgt + 192), row, 3);
}

static inline void product_16(int32_t *sum, const int32_t *before, const int8_t *inp, const int8_t *wgt) {
  int8x16_t row = vld1q_s8(inp);
  for (int i = 0; i < 16; i += 4) vst1q_s32(sum + i, four_sums(vld1q_s32(before + i), wgt + 4 * i, row));
}

/* Products that all go to one sum, which stays in registers. */
static void summed_16(int32_t *sum, const int8_t *inp, const int8_t *wgt, Place step, int64_t count) {
  int32x4_t sums[4];
  for (int i = 0; i < 4; i++) sums[i] = vld1q_s32(sum + 4 * i);
  for (int64_t n = 0; n < count; n++, inp += step.src, wgt += step.wgt) {
    int8x16_t row = vld1q_s8(inp);
    for (int i = 0; i < 4; i++) sums[i] = four_sums(sums[i], wgt + 16 * i, row);
  }
  for (int i = 0; i < 4; i++) vst1q_s32(sum + 4 * i, sums[i]);
}
#elif defined(__AVX512BW__)
/* Blocks of weights are kept as they are multiplied: two inputs of all outputs behind each other. */
void load_weights(const Config *config, int8_t *to, const int8_t *from, int64_t count) {
  if (!is_published(config)) {
    memcpy(to, from, (size_t)(count * element_bytes(config, MEM_WGT)));
    return;
  }
  int16_t first[32];
  for (int i = 0; i < 32; i++) first[i] = (int16_t)(i % 8 * 8 + i / 8); /* of eight outputs: pairs 0 to 3 */
  const __m512i low = _mm512_loadu_si512(first), high = _mm512_add_epi16(low, _mm512_set1_epi16(4));
  const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), odd = _mm512_add_epi64(even, _mm512_set1_epi64(4));
  for (int64_t block = 0; block < count; block++, to += 256, from += 256) {
    __m512i rows[4], half[4];
    for (int i = 0; i < 4; i++) rows[i] = _mm512_loadu_si512(from + 64 * i);
    for (int i = 0; i < 4; i++)
      half[i] = _mm512_permutex2var_epi16(rows[i % 2 * 2], i < 2 ? low : high, rows[i % 2 * 2 + 1]);
    for (int i = 0; i < 4; i++) {
      const __m512i *both = half + i / 2 * 2;
      _mm512_storeu_si512(to + 64 * i, _mm512_permutex2var_epi64(both[0], i % 2 ? odd : even, both[1]));
    }
  }
}

typedef struct {
  __m512i pairs[8];
} Weights;

static inline Weights weights_16(const int8_t *wgt) {
  Weights found;
  for (int pair = 0; pair < 8; pair++)
    found.pairs[pair] = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(wgt + 32 * pair)));
  return found;
}

static inline __m512i sums_16(__m512i sum, Weights weights, const int8_t *inp) {
  __m512i row = _mm512_castsi256_si512(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)inp)));
  for (int pair = 0; pair < 8; pair++) {
    __m512i two = _mm512_permutexvar_epi32(_mm512_set1_epi32(pair), row);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(weights.pairs[pair], two));
  }
  return sum;
}

static inline void product_16(int32_t *sum, const int32_t *before, const int8_t *inp, const int8_t *wgt) {
  _mm512_storeu_si512(sum, sums_16(_mm512_loadu_si512(before), weights_16(wgt), inp));
}

/* Products that all go to one sum, which stays in a register. */
static void summed_16(int32_t *sum, const int8_t *inp, const int8_t *wgt, Place step, int64_t count) {
  __m512i sums = _mm512_loadu_si512(sum);
  for (int64_t n = 0; n < count; n++, inp += step.src, wgt += step.wgt)
    sums = sums_16(sums, weights_16(wgt), inp);
  _mm512_storeu_si512(sum, sums);
}
#else
void load_weights(const Config *config, int8_t *to, const int8_t *from, int64_t count) {
  memcpy(to, from, (size_t)(count * element_bytes(config, MEM_WGT)));
}

static inline void product_16(int32_t *sum, const int32_t *before, const int8_t *inp, const int8_t *wgt) {
  product(sum, before, inp, wgt, 1, 16, 16);
}

static void summed_16(int32_t *sum, const int8_t *inp, const int8_t *wgt, Place step, int64_t count) {
  for (int64_t n = 0; n < count; n++, inp += step.src, wgt += step.wgt) product_16(sum, sum, inp, wgt);
}
#endif

static inline void any_product(const Config *config, int32_t *sum, const int32_t *before, const int8_t *inp,
                               const int8_t *wgt) {
  if (is_published(config)) product_16(sum, before, inp, wgt);
  else product(sum, before, inp, wgt, config->batch, config->block_out, config->block_in);
}

static int32_t shifted(int32_t one, int32_t by) {
  if (by >= 0) return one >> (by > 31 ? 31 : by);
  return by < -31 ? 0 : (int32_t)((uint32_t)one << -by);
}

#define ALL_LANES(result) \
  for (int64_t i = 0; i < lanes; i++) { \
    int32_t one = dst[i], other = it->immediate ? it->value : src[i]; \
    dst[i] = (result); \
  } \
  break

static void operate(const Instruction *it, int32_t *dst, const int32_t *src, int64_t lanes) {
  switch (it->alu) {
    case ALU_MIN: ALL_LANES(one < other ? one : other);
    case ALU_MAX: ALL_LANES(one > other ? one : other);
    case ALU_ADD: ALL_LANES((int32_t)((uint32_t)one + (uint32_t)other));
    case ALU_MUL: ALL_LANES((int32_t)((uint32_t)one * (uint32_t)other));
    default: ALL_LANES(shifted(one, other));
  }
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

/* One product after the other, as the hardware does it. */
static void gemm_in_order(Machine *machine, const Instruction *it, int64_t begin, int64_t end) {
  const Config *config = machine->config;
  int64_t lanes = config->batch * config->block_out;
  int64_t inp_bytes = element_bytes(config, MEM_INP), wgt_bytes = element_bytes(config, MEM_WGT);
  for (int64_t pair = begin; pair < end; pair++) {
    int64_t o = pair / it->inner, i = pair % it->inner;
    Place base = {o * it->dst_outer + i * it->dst_inner, o * it->src_outer + i * it->src_inner,
                  o * it->wgt_outer + i * it->wgt_inner};
    for (int64_t k = it->uop_begin; k < it->uop_end; k++) {
      Place at = machine->places[k];
      at = (Place){at.dst + base.dst, at.src + base.src, at.wgt + base.wgt};
      if (it->reset) memset(machine->acc + at.dst * lanes, 0, (size_t)lanes * sizeof(int32_t));
      else stale_product(machine, at, machine->inp + at.src * inp_bytes, machine->wgt + at.wgt * wgt_bytes);
    }
  }
  while (end == it->outer * it->inner && machine->flight->count) land(machine->flight, machine->acc, lanes);
}

static inline void products_16(int32_t *sum, const int8_t *inp, const int8_t *wgt, Place step, int64_t count) {
  if (!step.dst) {
    summed_16(sum, inp, wgt, step, count);
    return;
  }
#ifdef __AVX512BW__
  if (!step.wgt) {
    Weights weights = weights_16(wgt);
    for (int64_t i = 0; i < count; i++, sum += step.dst, inp += step.src)
      _mm512_storeu_si512(sum, sums_16(_mm512_loadu_si512(sum), weights, inp));
    return;
  }
#endif
  for (int64_t i = 0; i < count; i++, sum += step.dst, inp += step.src, wgt += step.wgt)
    product_16(sum, sum, inp, wgt);
}

static void products(const Config *config, int32_t *sum, const int8_t *inp, const int8_t *wgt, Place step,
                     int64_t count) {
  for (int64_t i = 0; i < count; i++, sum += step.dst, inp += step.src, wgt += step.wgt)
    product(sum, sum, inp, wgt, config->batch, config->block_out, config->block_in);
}

/* Sums that nobody reads too early may be added in any order: micro-ops outside, so that weights stay near. */
static void gemm_by_uops(Machine *machine, const Instruction *it, int64_t begin, int64_t end) {
  const Config *config = machine->config;
  int64_t lanes = config->batch * config->block_out;
  int64_t inp_bytes = element_bytes(config, MEM_INP), wgt_bytes = element_bytes(config, MEM_WGT);
  bool wide = is_published(config);
  Place step = {it->dst_inner * lanes, it->src_inner * inp_bytes, it->wgt_inner * wgt_bytes};
  Place turn = {it->dst_outer * lanes, it->src_outer * inp_bytes, it->wgt_outer * wgt_bytes};
  int64_t outer = begin / it->inner, skipped = begin % it->inner;
  for (int64_t k = it->uop_begin; k < it->uop_end; k++) {
    Place at = machine->places[k];
    int32_t *sum = machine->acc + at.dst * lanes + outer * turn.dst;
    const int8_t *inp = machine->inp + at.src * inp_bytes + outer * turn.src;
    const int8_t *wgt = machine->wgt + at.wgt * wgt_bytes + outer * turn.wgt;
    for (int64_t pair = begin, i = skipped; pair < end; i = 0, sum += turn.dst, inp += turn.src, wgt += turn.wgt) {
      int64_t count = it->inner - i < end - pair ? it->inner - i : end - pair;
      int32_t *sums = sum + i * step.dst;
      if (wide) products_16(sums, inp + i * step.src, wgt + i * step.wgt, step, count);
      else products(config, sums, inp + i * step.src, wgt + i * step.wgt, step, count);
      pair += count;
    }
  }
}

/* What an instruction comes to as far as it depends on nothing but micro-ops; programs repeat a few of them. */
static const Known *known_of(Machine *machine, const Instruction *it) {
  for (int64_t i = 0; i < KNOWN && i < machine->known_count; i++)
    if (machine->known[i].key[0] == it->key[0] && machine->known[i].key[1] == it->key[1]) return &machine->known[i];
  Known *known = &machine->known[machine->known_count++ % KNOWN];
  *known = (Known){{it->key[0], it->key[1]}, checked_compute(machine, it), false};
  known->stale = known->fault == OK && it->op == OP_GEMM && it->uop_begin < it->uop_end && collides(machine, it);
  return known;
}

int check_compute(Machine *machine, const Instruction *it) { return known_of(machine, it)->fault; }

static void gemm(Machine *machine, const Instruction *it, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (it->reset || known_of(machine, it)->stale) gemm_in_order(machine, it, begin, end);
  else gemm_by_uops(machine, it, begin, end);
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
