"""An accelerator as a value: sizes of blocks and scratchpads, and how long things take."""

from dataclasses import dataclass, fields

from tuneloom_vta.errors import ConfigurationError

_UOP_BYTES = 4
_MOST_LANES = 1024
_MOST_LATENCY = 16
_MAY_BE_ZERO = ("row_cycles", "latency_cycles", "fetch_cycles", "issue_cycles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Sizes in bytes and times in cycles; inputs and weights are int8, sums int32.

    The field widths of instructions and micro-ops follow from the sizes. Raises
    ConfigurationError for sizes that contradict each other.
    """

    name: str = "vta"
    batch: int = 1
    block_in: int = 16
    block_out: int = 16
    uop_bytes: int = 32 * 1024
    inp_bytes: int = 32 * 1024
    wgt_bytes: int = 256 * 1024
    acc_bytes: int = 128 * 1024
    queue_depth: int = 512
    token_depth: int = 512
    bus_bytes: int = 8
    align_bytes: int = 8
    latency_cycles: int = 64
    row_cycles: int = 4
    fetch_cycles: int = 2
    issue_cycles: int = 8
    gemm_cycles: int = 1
    alu_cycles: int = 2
    sum_latency: int = 3
    watchdog_cycles: int = 100_000_000
    frequency_hz: int = 100_000_000

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_depths()
        self._check_fields()
        if self.batch * self.block_out > _MOST_LANES or self.sum_latency > _MOST_LATENCY:
            raise ConfigurationError(
                f"{self.name}: at most {_MOST_LANES} sums an element and a sum_latency of {_MOST_LATENCY}; "
                f"got {self.batch * self.block_out} and {self.sum_latency}"
            )

    def _check_numbers(self) -> None:
        for field in fields(self):
            value, free = getattr(self, field.name), field.name in _MAY_BE_ZERO
            if isinstance(value, int) and value < (0 if free else 1):
                must = "not be negative" if free else "be positive"
                raise ConfigurationError(f"{self.name}: {field.name} must {must}, got {value}")

    def _check_depths(self) -> None:
        for memory, depth in self.depths.items():
            size, each = getattr(self, f"{memory}_bytes"), self.element_bytes[memory]
            if size % each or depth & (depth - 1):
                raise ConfigurationError(
                    f"{self.name}: {memory}_bytes={size} is not a power of two of elements of {each} bytes"
                )

    def _check_fields(self) -> None:
        bits = self.index_bits
        words = {
            "a micro-op": (bits["acc"] + max(bits["acc"], bits["inp"]) + bits["wgt"], 32),
            "the first half of a compute instruction": (37 + 2 * bits["uop"], 64),
            "the factors of a product": (2 * (bits["acc"] + bits["inp"] + bits["wgt"]), 64),
            "the factors of an operation on sums": (4 * bits["acc"] + 20, 64),
            "the address field of a transfer": (max(bits.values()), 16),
        }
        for what, (needed, room) in words.items():
            if needed > room:
                raise ConfigurationError(
                    f"{self.name}: {what} has {room} bits and would need {needed}; use smaller scratchpads"
                )

    @property
    def element_bytes(self) -> dict[str, int]:
        """Bytes of one element of each memory."""
        sums = self.batch * self.block_out
        inputs, weights = self.batch * self.block_in, self.block_out * self.block_in
        return {"uop": _UOP_BYTES, "inp": inputs, "wgt": weights, "acc": 4 * sums}

    @property
    def depths(self) -> dict[str, int]:
        """Elements in each scratchpad."""
        return {m: int(getattr(self, f"{m}_bytes")) // each for m, each in self.element_bytes.items()}

    @property
    def index_bits(self) -> dict[str, int]:
        """Bits of an index into each scratchpad."""
        return {memory: depth.bit_length() - 1 for memory, depth in self.depths.items()}

    def seconds(self, cycles: int) -> float:
        """How long so many cycles take."""
        return cycles / self.frequency_hz


DEFAULT = Configuration()
"""The published sizes: 16 × 16 products, 32 KiB inputs, 256 KiB weights, 128 KiB sums, 32 KiB micro-ops."""

SMALL = Configuration(
    name="vta-small",
    block_in=8,
    block_out=8,
    uop_bytes=4 * 1024,
    inp_bytes=16 * 1024,
    wgt_bytes=32 * 1024,
    acc_bytes=32 * 1024,
    queue_depth=64,
    token_depth=16,
    bus_bytes=16,
    latency_cycles=120,
    row_cycles=2,
    sum_latency=5,
)
"""An invented accelerator: smaller blocks and scratchpads, a wider memory that answers later."""
