/* Instructions of 128 bits. A field never crosses the middle: it moves to the upper half whole. */
#include "vta.h"

#define TOKEN_BITS 0x78ull

typedef struct {
  const uint64_t *words;
  int at;
} Cursor;

static uint64_t take(Cursor *cursor, int64_t width) {
  if (cursor->at < 64 && cursor->at + width > 64) cursor->at = 64;
  uint64_t word = cursor->words[cursor->at >= 64];
  uint64_t value = (word >> (cursor->at & 63)) & (width >= 64 ? ~0ull : (1ull << width) - 1);
  cursor->at += (int)width;
  return value;
}

static void decode_transfer(Cursor *cursor, Instruction *out) {
  out->memory = (int)take(cursor, 3);
  out->sram = (int64_t)take(cursor, 16);
  out->dram = (int64_t)take(cursor, 32);
  out->y_size = (int64_t)take(cursor, 16);
  out->x_size = (int64_t)take(cursor, 16);
  out->x_stride = (int64_t)take(cursor, 16);
  out->y_before = (int64_t)take(cursor, 4);
  out->y_after = (int64_t)take(cursor, 4);
  out->x_before = (int64_t)take(cursor, 4);
  out->x_after = (int64_t)take(cursor, 4);
}

static void decode_compute(const Config *config, Cursor *cursor, Instruction *out) {
  bool products = out->op == OP_GEMM;
  int64_t src_bits = products ? config->inp_bits : config->acc_bits;
  out->reset = take(cursor, 1);
  out->uop_begin = (int64_t)take(cursor, config->uop_bits);
  out->uop_end = (int64_t)take(cursor, config->uop_bits + 1);
  out->outer = (int64_t)take(cursor, 14);
  out->inner = (int64_t)take(cursor, 14);
  out->dst_outer = (int64_t)take(cursor, config->acc_bits);
  out->dst_inner = (int64_t)take(cursor, config->acc_bits);
  out->src_outer = (int64_t)take(cursor, src_bits);
  out->src_inner = (int64_t)take(cursor, src_bits);
  if (products) {
    out->wgt_outer = (int64_t)take(cursor, config->wgt_bits);
    out->wgt_inner = (int64_t)take(cursor, config->wgt_bits);
  } else {
    out->alu = (int)take(cursor, 3);
    out->immediate = take(cursor, 1);
    out->value = (int16_t)take(cursor, 16);
  }
}

/* Inputs and weights are the loader's; sums and micro-ops are loaded by the module that uses them. */
int module_of(const uint64_t *words) {
  int op = (int)(words[0] & 7), memory = (int)((words[0] >> 7) & 7);
  if (op == OP_STORE) return STORER;
  return op == OP_LOAD && (memory == MEM_INP || memory == MEM_WGT) ? LOADER : COMPUTER;
}

Instruction decode(const Config *config, const uint64_t *words) {
  Cursor cursor = {words, 0};
  Instruction out = {.key = {words[0] & ~TOKEN_BITS, words[1]}};
  out.op = (int)take(&cursor, 3);
  out.pop_prev = take(&cursor, 1);
  out.pop_next = take(&cursor, 1);
  out.push_prev = take(&cursor, 1);
  out.push_next = take(&cursor, 1);
  if (out.op == OP_LOAD || out.op == OP_STORE) decode_transfer(&cursor, &out);
  if (out.op == OP_GEMM || out.op == OP_ALU) decode_compute(config, &cursor, &out);
  return out;
}
