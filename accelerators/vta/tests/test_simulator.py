"""Programs of a few instructions: what they compute, how long they take, how they fail."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tuneloom_vta import DEFAULT, SMALL, Configuration
from tuneloom_vta.instructions import Alu, Memory, Opcode, Words, encoded, micro_ops
from tuneloom_vta.simulator.device import Fault, Outcome, run

INP, WGT, ACC, UOP, OUT = (0x1000 * place for place in range(1, 6))
BYTES = 0x10000


def put(memory: NDArray[np.uint8], address: int, values: NDArray[Any]) -> None:
    content = np.frombuffer(values.tobytes(), dtype=np.uint8)
    memory[address : address + len(content)] = content


def load(memory: Memory, address: int, **fields: Any) -> Words:
    each = {**DEFAULT.element_bytes, "acc8": 16}[memory.name.lower()]
    fields = {"y_size": 1, "x_size": 1, **fields}
    return encoded(DEFAULT, Opcode.LOAD, memory=memory, dram=address // each, **fields)


def store(**fields: Any) -> Words:
    fields = {"y_size": 1, "x_size": 1, "pop_prev": 1, "push_prev": 1, **fields}
    return encoded(DEFAULT, Opcode.STORE, memory=Memory.OUT, dram=OUT // 16, **fields)


def gemm(**fields: Any) -> Words:
    return encoded(DEFAULT, Opcode.GEMM, **{"uop_end": 1, "iter_out": 1, "iter_in": 1, **fields})


def alu(operation: Alu, **fields: Any) -> Words:
    return encoded(
        DEFAULT, Opcode.ALU, alu=operation, **{"uop_end": 1, "iter_out": 1, "iter_in": 1, **fields}
    )


UOPS = load(Memory.UOP, UOP, x_size=4)
END = (encoded(DEFAULT, Opcode.LOAD, memory=Memory.UOP, pop_next=1), encoded(DEFAULT, Opcode.FINISH))


def executed(
    memory: NDArray[np.uint8], *parts: Words, configuration: Configuration = DEFAULT
) -> tuple[Outcome, NDArray[np.int8]]:
    """Run on a copy; the outcome and the first page of results."""
    after = memory.copy()
    outcome = run(configuration, np.concatenate(parts), after)
    return outcome, after[OUT : OUT + 0x1000].view(np.int8)


@pytest.fixture
def memory() -> NDArray[np.uint8]:
    """Random inputs, weights and sums, and micro-ops for the first places."""
    filled = np.random.default_rng(1).integers(0, 256, BYTES, dtype=np.uint8)
    filled[OUT : OUT + 0x1000] = 0
    put(filled, UOP, micro_ops(DEFAULT, np.arange(4), np.arange(4), np.zeros(4, dtype=int)))
    return filled


def inputs(memory: NDArray[np.uint8], count: int = 1) -> NDArray[np.int64]:
    return memory[INP : INP + 16 * count].view(np.int8).reshape(-1, 16).astype(np.int64)


def product(memory: NDArray[np.uint8]) -> NDArray[np.int8]:
    weights = memory[WGT : WGT + 256].view(np.int8).reshape(16, 16).astype(np.int64)
    return (inputs(memory)[0] @ weights.T >> 8).astype(np.int8)


PRODUCT = (
    UOPS,
    gemm(reset=1),
    load(Memory.INP, INP),
    load(Memory.WGT, WGT, push_next=1),
    gemm(pop_prev=1),
    alu(Alu.SHR, use_imm=1, imm=8, push_next=1),
    store(),
    *END,
)


def test_a_product_sums_int8_products_and_stores_the_low_byte(memory: NDArray[np.uint8]) -> None:
    outcome, results = executed(memory, *PRODUCT)
    assert outcome.fault is Fault.NONE
    assert (results[:16] == product(memory)).all()
    assert outcome.products == 1


def test_a_padded_load_puts_zeros_around_rows_with_a_stride(memory: NDArray[np.uint8]) -> None:
    pads = {"y_before": 1, "y_after": 1, "x_before": 2, "x_after": 1}
    loaded = load(Memory.ACC8, INP, y_size=2, x_size=3, x_stride=5, push_next=1, **pads)
    outcome, results = executed(memory, loaded, store(x_size=24), *END)
    wanted = np.zeros((4, 6, 16), dtype=np.int8)
    wanted[1:3, 2:5] = inputs(memory, 10).reshape(2, 5, 16)[:, :3]
    assert outcome.fault is Fault.NONE
    assert (results[: wanted.size] == wanted.reshape(-1)).all()


@pytest.mark.parametrize(
    ("operation", "imm"),
    [(Alu.MIN, 5), (Alu.MAX, -7), (Alu.ADD, 300), (Alu.SHR, 3), (Alu.SHR, -2), (Alu.MUL, -3)],
)
def test_operations_with_a_number_follow_32_bit_arithmetic(
    memory: NDArray[np.uint8], operation: Alu, imm: int
) -> None:
    operated = alu(operation, use_imm=1, imm=imm, push_next=1)
    _, results = executed(memory, UOPS, load(Memory.ACC, ACC), operated, store(), *END)
    sums = memory[ACC : ACC + 64].view(np.int32).astype(np.int64)
    wanted = {
        Alu.MIN: np.minimum(sums, imm),
        Alu.MAX: np.maximum(sums, imm),
        Alu.ADD: sums + imm,
        Alu.SHR: sums >> max(imm, 0) << max(-imm, 0),
        Alu.MUL: sums * imm,
    }[operation]
    assert (results[:16] == wanted.astype(np.int32).astype(np.int8)).all()


def test_an_operation_on_two_sums_reads_the_second_at_its_source(memory: NDArray[np.uint8]) -> None:
    put(memory, UOP, micro_ops(DEFAULT, [0], [1], [0]))
    added = alu(Alu.ADD, push_next=1)
    _, results = executed(memory, UOPS, load(Memory.ACC, ACC, x_size=2), added, store(), *END)
    sums = memory[ACC : ACC + 128].view(np.int32).reshape(2, 16).astype(np.int64)
    assert (results[:16] == sums.sum(axis=0).astype(np.int8)).all()


TOO_FAR = {"sram": DEFAULT.depths["inp"] - 1, "x_size": 2}


@pytest.mark.parametrize(
    ("fault", "program"),
    [
        (Fault.SCRATCHPAD_OVERFLOW, (load(Memory.INP, INP, **TOO_FAR), *END)),
        (Fault.SCRATCHPAD_OVERFLOW, (UOPS, gemm(iter_out=2000, iter_in=2, dst_out=2), *END)),
        (Fault.SCRATCHPAD_OVERFLOW, (UOPS, alu(Alu.ADD, iter_out=2000, src_out=2), *END)),
        (Fault.MICRO_OPS_EXCEEDED, (load(Memory.UOP, UOP, sram=8191, x_size=2), *END)),
        (Fault.MICRO_OPS_EXCEEDED, (gemm(uop_end=8193), *END)),
        (Fault.OUTSIDE_MEMORY, (load(Memory.INP, BYTES - 16, x_size=2), *END)),
        (Fault.OUTSIDE_MEMORY, (load(Memory.INP, INP, y_size=9, x_stride=0xFFFF), *END)),
        (Fault.MISALIGNED, (load(Memory.UOP, UOP + 4), *END)),
        (Fault.BAD_INSTRUCTION, (UOPS | np.array([7, 0], dtype=np.uint64), *END)),
        (Fault.BAD_INSTRUCTION, (UOPS, alu(Alu.MUL, use_imm=1) | encoded(DEFAULT, Opcode.ALU, alu=7), *END)),
        (Fault.BAD_INSTRUCTION, (store(pop_prev=0, y_before=1), *END)),
        (Fault.DEADLOCK, (gemm(pop_prev=1), *END)),
        (Fault.DEADLOCK, (UOPS,)),
    ],
)
def test_hardware_faults_are_values(
    memory: NDArray[np.uint8], fault: Fault, program: tuple[Words, ...]
) -> None:
    assert executed(memory, *program)[0].fault is fault


def test_a_fault_names_its_instruction(memory: NDArray[np.uint8]) -> None:
    outcome, _ = executed(memory, UOPS, gemm(reset=1), load(Memory.ACC, ACC, sram=2048), *END)
    assert outcome.instruction == 2


def test_a_watchdog_ends_what_takes_too_long(memory: NDArray[np.uint8]) -> None:
    impatient = replace(DEFAULT, watchdog_cycles=1000)
    program = (UOPS, gemm(reset=1, iter_out=1000, iter_in=2), END[1])
    assert executed(memory, *program)[0].fault is Fault.NONE
    assert executed(memory, *program, configuration=impatient)[0].fault is Fault.WATCHDOG


def test_a_watchdog_does_not_wait_for_loops_that_would_take_hours(memory: NDArray[np.uint8]) -> None:
    endless = gemm(uop_end=4, iter_out=16383, iter_in=16383)
    assert executed(memory, UOPS, endless, END[1])[0].fault is Fault.WATCHDOG


def test_a_full_instruction_queue_in_front_of_what_it_waits_for_is_a_deadlock(
    memory: NDArray[np.uint8],
) -> None:
    waiting = [load(Memory.INP, INP, pop_next=1)] * 3
    program = (UOPS, *waiting, *[gemm(reset=1, push_prev=1)] * 3, END[1])
    narrow = replace(DEFAULT, queue_depth=2)
    assert executed(memory, *program)[0].fault is Fault.NONE
    assert executed(memory, *program, configuration=narrow)[0].fault is Fault.DEADLOCK


def test_products_that_do_not_wait_for_their_inputs_are_wrong(memory: NDArray[np.uint8]) -> None:
    hasty = (*PRODUCT[:3], load(Memory.WGT, WGT), gemm(), *PRODUCT[5:])
    outcome, results = executed(memory, *hasty)
    assert outcome.fault is Fault.NONE
    assert (results[:16] != product(memory)).any()


def test_a_store_that_does_not_wait_for_its_sums_is_wrong(memory: NDArray[np.uint8]) -> None:
    hasty = (*PRODUCT[:5], alu(Alu.SHR, use_imm=1, imm=8), store(pop_prev=0), *END)
    outcome, results = executed(memory, *hasty)
    assert outcome.fault is Fault.NONE
    assert (results[:16] != product(memory)).any()


def test_inputs_that_are_overwritten_while_products_read_them_make_results_wrong(
    memory: NDArray[np.uint8],
) -> None:
    def results(waits: int) -> NDArray[np.int8]:
        products = gemm(pop_prev=1, iter_out=600, dst_out=3, push_prev=1)
        other = load(Memory.INP, INP + 16, pop_next=waits)
        rest = (alu(Alu.ADD, use_imm=1, push_next=1), store(x_size=256, sram=1536), *END)
        outcome, stored = executed(memory, *PRODUCT[:4], products, other, *rest)
        assert outcome.fault is Fault.NONE
        return stored

    assert (results(waits=1) != results(waits=0)).any()


def test_a_sum_that_is_read_before_it_is_written_loses_a_product(memory: NDArray[np.uint8]) -> None:
    twice = (*PRODUCT[:4], gemm(pop_prev=1, iter_out=2), *PRODUCT[5:])
    outcome, results = executed(memory, *twice)
    assert outcome.stale_sums == 1
    assert (results[:16] == product(memory)).all()
    waited, doubled = executed(memory, *twice, configuration=replace(DEFAULT, sum_latency=1))
    assert waited.stale_sums == 0
    assert (doubled[:16] != product(memory)).any()


@pytest.mark.parametrize(("distance", "stale"), [(1, True), (2, True), (3, False)])
def test_sums_need_three_cycles_until_they_can_be_read_again(
    memory: NDArray[np.uint8], distance: int, stale: bool
) -> None:
    zeros = np.zeros(12, dtype=int)
    put(memory, UOP, micro_ops(DEFAULT, np.arange(12) % distance, zeros, zeros))
    uops = load(Memory.UOP, UOP, x_size=12)
    program = (uops, *PRODUCT[1:4], gemm(pop_prev=1, uop_end=12), *PRODUCT[5:])
    assert (executed(memory, *program)[0].stale_sums > 0) is stale


@pytest.mark.parametrize(("count", "stale"), [(1, True), (2, True), (3, False), (4, False)])
def test_loops_that_come_back_to_a_sum_too_early_read_it_too_early(
    memory: NDArray[np.uint8], count: int, stale: bool
) -> None:
    """The first sums of a round are those of the round before."""
    program = (*PRODUCT[:4], gemm(pop_prev=1, uop_end=count, iter_in=6), *PRODUCT[5:])
    assert (executed(memory, *program)[0].stale_sums > 0) is stale


def test_cycles_are_the_same_every_time_and_without_data(memory: NDArray[np.uint8]) -> None:
    counted = run(DEFAULT, np.concatenate(PRODUCT), memory.copy(), with_data=False)
    assert {executed(memory, *PRODUCT)[0].cycles for _ in range(3)} == {counted.cycles}


def test_modules_work_at_the_same_time(memory: NDArray[np.uint8]) -> None:
    together = (UOPS, load(Memory.INP, INP, x_size=200), gemm(reset=1, iter_out=500), END[1])
    outcome, _ = executed(memory, *together)
    assert sum(outcome.busy.values()) > outcome.cycles


def test_transfers_share_one_channel_to_memory(memory: NDArray[np.uint8]) -> None:
    def cycles(*program: Words) -> int:
        return executed(memory, *program, END[1])[0].cycles

    sums = load(Memory.ACC, ACC, x_size=32)
    assert cycles(load(Memory.INP, INP, x_size=200), sums) > cycles(sums) + 200


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 2), min_size=1, max_size=30), small=st.booleans()
)
def test_no_program_brings_the_process_down(words: list[tuple[int, int]], small: bool) -> None:
    configuration = replace(SMALL if small else DEFAULT, watchdog_cycles=10**6)
    outcome = run(configuration, np.array(words, dtype=np.uint64), np.zeros(4096, dtype=np.uint8))
    assert outcome.fault in list(Fault)
