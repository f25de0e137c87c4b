/* Three modules that run side by side, kept in order by tokens alone.
 *
 * The instruction that can start earliest runs next. What it does to memories happens when it ends;
 * products and stores do their first half when they start. Programs that wait as they should can't tell
 * the difference; those that do not see what hardware would show them: old data, or too new data.
 */
#include <stdlib.h>
#include <string.h>

#include "vta.h"

typedef struct {
  int64_t *items;
  int64_t capacity, first, count;
} Queue;

typedef struct {
  Queue waiting;       /* indices of instructions */
  Queue arrivals;      /* when each of them was fetched */
  int64_t *left;       /* when the instructions of the last `queue_depth` places left the queue */
  int64_t fetched, started, free_at;
  bool decoded;        /* whether `head` is the first instruction that waits */
  Instruction head;
  bool pending;        /* whether the effect of `current` is still to come */
  Instruction current;
} Module;

typedef struct {
  Machine machine;
  Module modules[MODULES];
  Queue tokens[TOKENS];
  int64_t next_fetch, fetched_at;
  bool finished;
} Simulation;

static bool create(Queue *queue, int64_t capacity) {
  *queue = (Queue){malloc((size_t)capacity * sizeof(int64_t)), capacity, 0, 0};
  return queue->items != NULL;
}

static void push(Queue *queue, int64_t item) {
  queue->items[(queue->first + queue->count++) % queue->capacity] = item;
}

static int64_t front(const Queue *queue) { return queue->items[queue->first]; }

static int64_t pop(Queue *queue) {
  int64_t item = front(queue);
  queue->first = (queue->first + 1) % queue->capacity;
  queue->count--;
  return item;
}

static int64_t later(int64_t one, int64_t other) { return one > other ? one : other; }

/* In order; an instruction whose queue is full holds up all behind it. */
static void fetch(Simulation *simulation) {
  const Config *config = simulation->machine.config;
  while (simulation->next_fetch < simulation->machine.count) {
    const uint64_t *words = simulation->machine.words + 2 * simulation->next_fetch;
    Module *module = &simulation->modules[module_of(words)];
    if (module->waiting.count == config->queue_depth) return;
    int64_t room = 0;
    if (module->fetched >= config->queue_depth) room = module->left[module->fetched % config->queue_depth];
    simulation->fetched_at = later(simulation->fetched_at + config->fetch_cycles, room);
    push(&module->waiting, simulation->next_fetch++);
    push(&module->arrivals, simulation->fetched_at);
    module->fetched++;
  }
}

typedef struct {
  int pop_prev, pop_next, push_prev, push_next;
} Wiring;

static const Wiring WIRING[MODULES] = {
    {-1, COMPUTE_TO_LOAD, -1, LOAD_TO_COMPUTE},
    {LOAD_TO_COMPUTE, STORE_TO_COMPUTE, COMPUTE_TO_LOAD, COMPUTE_TO_STORE},
    {COMPUTE_TO_STORE, -1, STORE_TO_COMPUTE, -1},
};

static bool has_token(const Simulation *simulation, bool wanted, int queue) {
  return !wanted || queue < 0 || simulation->tokens[queue].count > 0;
}

static bool has_room(const Simulation *simulation, bool wanted, int queue) {
  return !wanted || queue < 0 || simulation->tokens[queue].count < simulation->tokens[queue].capacity;
}

/* When a module's next instruction can start; negative if it has none, or must wait for tokens or room. */
static int64_t ready_at(const Simulation *simulation, int which) {
  const Module *module = &simulation->modules[which];
  if (!module->waiting.count) return -1;
  const Instruction *it = &module->head;
  Wiring wires = WIRING[which];
  if (!has_token(simulation, it->pop_prev, wires.pop_prev)) return -1;
  if (!has_token(simulation, it->pop_next, wires.pop_next)) return -1;
  if (!has_room(simulation, it->push_prev, wires.push_prev)) return -1;
  if (!has_room(simulation, it->push_next, wires.push_next)) return -1;
  int64_t start = later(module->free_at, front(&module->arrivals));
  if (it->pop_prev && wires.pop_prev >= 0) start = later(start, front(&simulation->tokens[wires.pop_prev]));
  if (it->pop_next && wires.pop_next >= 0) start = later(start, front(&simulation->tokens[wires.pop_next]));
  return start;
}

static void decode_head(Simulation *simulation, Module *module) {
  if (module->decoded || !module->waiting.count) return;
  module->head = decode(simulation->machine.config, simulation->machine.words + 2 * front(&module->waiting));
  module->decoded = true;
}

static int64_t parts_of(const Instruction *it) {
  if (it->op == OP_STORE) return it->x_size * it->y_size;
  return it->op == OP_GEMM || it->op == OP_ALU ? it->outer * it->inner : 0;
}

static void run_parts(Machine *machine, const Instruction *it, int64_t begin, int64_t end) {
  if (it->op == OP_STORE) store(machine, it, begin, end);
  else compute(machine, it, begin, end);
}

/* What modules had under way and ended up to now takes effect, the earliest first. */
static void settle(Simulation *simulation, int64_t now) {
  for (;;) {
    Module *first = NULL;
    for (int i = 0; i < MODULES; i++) {
      Module *module = &simulation->modules[i];
      if (module->pending && module->free_at <= now && (!first || module->free_at < first->free_at)) first = module;
    }
    if (!first) return;
    first->pending = false;
    if (first->current.op == OP_LOAD) load(&simulation->machine, &first->current);
    int64_t parts = parts_of(&first->current);
    run_parts(&simulation->machine, &first->current, (parts + 1) / 2, parts);
  }
}

static int check(Machine *machine, const Instruction *it) {
  if (it->op > OP_ALU) return BAD_INSTRUCTION;
  if (it->op == OP_LOAD || it->op == OP_STORE) return check_transfer(machine, it);
  return it->op == OP_FINISH ? OK : check_compute(machine, it);
}

static void take_tokens(Simulation *simulation, int which, const Instruction *it) {
  Wiring wires = WIRING[which];
  if (it->pop_prev && wires.pop_prev >= 0) pop(&simulation->tokens[wires.pop_prev]);
  if (it->pop_next && wires.pop_next >= 0) pop(&simulation->tokens[wires.pop_next]);
}

static void give_tokens(Simulation *simulation, int which, const Instruction *it, int64_t end) {
  Wiring wires = WIRING[which];
  if (it->push_prev && wires.push_prev >= 0) push(&simulation->tokens[wires.push_prev], end);
  if (it->push_next && wires.push_next >= 0) push(&simulation->tokens[wires.push_next], end);
}

static int start(Simulation *simulation, int which, int64_t now) {
  Machine *machine = &simulation->machine;
  Module *module = &simulation->modules[which];
  settle(simulation, now);
  const Instruction *it = &module->current;
  module->current = module->head;
  machine->report->instruction = front(&module->waiting);
  int fault = check(machine, it);
  if (fault) return fault;
  bool moves = it->op == OP_LOAD || it->op == OP_STORE;
  int64_t end = moves ? transfer_end(machine, it, now) : compute_end(machine, it, now);
  machine->report->cycles = later(machine->report->cycles, end);
  if (end > machine->config->watchdog_cycles) return WATCHDOG;
  pop(&module->waiting);
  pop(&module->arrivals);
  module->decoded = false;
  module->left[module->started++ % machine->config->queue_depth] = now;
  take_tokens(simulation, which, it);
  give_tokens(simulation, which, it, end);
  run_parts(machine, it, 0, (parts_of(it) + 1) / 2);
  module->pending = true;
  module->free_at = end;
  machine->report->busy[which] += end - now;
  simulation->finished = it->op == OP_FINISH;
  return OK;
}

/* A program that stops without its last instruction leaves the host waiting, like one whose queues do. */
static int simulate(Simulation *simulation) {
  while (!simulation->finished) {
    fetch(simulation);
    int64_t now = -1;
    int which = -1;
    for (int i = 0; i < MODULES; i++) {
      decode_head(simulation, &simulation->modules[i]);
      int64_t ready = ready_at(simulation, i);
      if (ready >= 0 && (which < 0 || ready < now)) which = i, now = ready;
    }
    if (which < 0) return DEADLOCK;
    int fault = start(simulation, which, now);
    if (fault) return fault;
  }
  settle(simulation, simulation->modules[COMPUTER].free_at); /* now the host reads the results */
  return OK;
}

static void *filled(int64_t bytes) {
  void *memory = malloc((size_t)bytes);
  if (memory) memset(memory, 0x5a, (size_t)bytes); /* what is left of whoever ran before */
  return memory;
}

static bool create_all(Simulation *simulation, const Config *config) {
  Machine *machine = &simulation->machine;
  machine->uop = filled(config->uop_depth * 4);
  machine->places = filled(config->uop_depth * (int64_t)sizeof(Place));
  machine->inp = filled(config->inp_depth * element_bytes(config, MEM_INP));
  machine->wgt = filled(config->wgt_depth * element_bytes(config, MEM_WGT));
  machine->acc = filled(config->acc_depth * element_bytes(config, MEM_ACC));
  machine->flight = calloc(1, sizeof(Flight));
  bool whole = machine->flight && machine->uop && machine->places && machine->inp && machine->wgt && machine->acc;
  if (machine->uop && machine->places) unpack(machine, 0, config->uop_depth);
  for (int i = 0; i < MODULES; i++) {
    Module *module = &simulation->modules[i];
    whole &= create(&module->waiting, config->queue_depth) && create(&module->arrivals, config->queue_depth);
    module->left = malloc((size_t)config->queue_depth * sizeof(int64_t));
    whole &= module->left != NULL;
  }
  for (int i = 0; i < TOKENS; i++) whole &= create(&simulation->tokens[i], config->token_depth);
  return whole;
}

static void release(Simulation *simulation) {
  free(simulation->machine.flight);
  free(simulation->machine.uop);
  free(simulation->machine.places);
  free(simulation->machine.inp);
  free(simulation->machine.wgt);
  free(simulation->machine.acc);
  for (int i = 0; i < MODULES; i++) {
    free(simulation->modules[i].waiting.items);
    free(simulation->modules[i].arrivals.items);
    free(simulation->modules[i].left);
  }
  for (int i = 0; i < TOKENS; i++) free(simulation->tokens[i].items);
}

/* Runs a program; `with_data` 0 counts cycles only. The configuration was checked by the caller. */
void tuneloom_vta_run(const Config *config, const uint64_t *words, int64_t count, uint8_t *dram, int64_t dram_bytes,
                      int64_t with_data, Report *report) {
  Simulation simulation;
  memset(&simulation, 0, sizeof simulation);
  memset(report, 0, sizeof *report);
  Machine *machine = &simulation.machine;
  machine->config = config;
  machine->words = words;
  machine->count = count;
  machine->dram = dram;
  machine->dram_bytes = dram_bytes;
  machine->with_data = with_data != 0;
  machine->report = report;
  report->fault = create_all(&simulation, config) ? simulate(&simulation) : OUT_OF_HOST_MEMORY;
  release(&simulation);
}
