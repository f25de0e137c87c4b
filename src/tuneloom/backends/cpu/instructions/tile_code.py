"""The function that multiplies a block in tiles, in LLVM's own language."""

from dataclasses import dataclass

from tuneloom.backends.cpu.instructions.tiles import ASKING, SIDE, TileProduct

_ROW_BYTES = 64
_LANE_BYTES = 4
_TILES = 8
_PALETTE = 1
_ASKED = "tuneloom_tiles_asked"
_ARGUMENTS = "ptr %s, i64 %s_row, ptr %x, i64 %x_row, ptr %w"
_DATA, _WEIGHTS = (4, 5), (6, 7)
"""Which tiles hold data and weights; the first four hold sums."""


def source_of(product: TileProduct) -> str:
    """The function for a block: sums, their row's length, data, their row's length, weights."""
    asking = ", ".join(f"i64 {number}" for number in ASKING)
    parts = [_Part(product=product, number=number) for number in range(-(-product.rows // (2 * SIDE)))]
    return f"""
@{product.name}_shape = linkonce_odr hidden constant [64 x i8] {_shape()}
@{_ASKED} = linkonce_odr hidden global i8 0
declare i64 @syscall(i64, ...)
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)
declare void @{product.instruction.llvm}(i8 immarg, i8 immarg, i8 immarg)
define linkonce_odr hidden i32 @{product.name}({_ARGUMENTS}) nounwind {{
entry:
  %asked = load i8, ptr @{_ASKED}
  %known = icmp ne i8 %asked, 0
  br i1 %known, label %begin, label %ask
ask:
  %answer = call i64 (i64, ...) @syscall({asking})
  store i8 1, ptr @{_ASKED}
  br label %begin
begin:
  %s_step = mul i64 %s_row, {_LANE_BYTES}
  %x_step = mul i64 %x_row, {_LANE_BYTES // product.instruction.each}
  call void @llvm.x86.ldtilecfg(ptr @{product.name}_shape)
  br label %part0
{"".join(part.code for part in parts)}part{len(parts)}:
  call void @llvm.x86.tilerelease()
  ret i32 0
}}
"""


def _shape() -> str:
    """How the CPU is told the shape of tiles: all are 16 rows of 64 bytes."""
    columns = [value for _ in range(_TILES) for value in (_ROW_BYTES, 0)]
    content = [_PALETTE, *([0] * 15), *columns, *([0] * 16), *([SIDE] * _TILES), *([0] * 8)]
    return 'c"' + "".join(f"\\{value:02X}" for value in content) + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """At most two by two tiles of sums: read, all products added to them, stored."""

    product: TileProduct
    number: int

    @property
    def down(self) -> range:
        """The first rows of its tiles."""
        first = 2 * SIDE * self.number
        return range(first, min(first + 2 * SIDE, self.product.rows), SIDE)

    @property
    def across(self) -> range:
        """Which tiles of a row it has."""
        return range(self.product.columns // SIDE)

    @property
    def sums(self) -> list[tuple[int, int, int]]:
        """Row, column and register of each of its tiles."""
        return [(i, j, 2 * i + j) for i in range(len(self.down)) for j in self.across]

    @property
    def code(self) -> str:
        lines = [f"part{self.number}:", *self._places(), *self._move_sums("tileloadd64"), *self._loop()]
        lines += [
            f"end{self.number}:",
            *self._move_sums("tilestored64"),
            f"  br label %part{self.number + 1}",
        ]
        return "\n".join([*lines, ""])

    def _places(self) -> list[str]:
        """Where its rows of data and its tiles of sums begin."""
        n, lines = self.number, []
        for i, row in enumerate(self.down):
            lines += [
                f"  %s{n}_{i}_at = mul i64 %s_step, {row}",
                f"  %x{n}_{i}_at = mul i64 %x_step, {row}",
                f"  %x{n}_{i} = getelementptr i8, ptr %x, i64 %x{n}_{i}_at",
            ]
        for i, j, _ in self.sums:
            lines += [
                f"  %s{n}_{i}_{j}_at = add i64 %s{n}_{i}_at, {j * _ROW_BYTES}",
                f"  %s{n}_{i}_{j} = getelementptr i8, ptr %s, i64 %s{n}_{i}_{j}_at",
            ]
        return lines

    def _move_sums(self, how: str) -> list[str]:
        return [
            f"  call void @llvm.x86.{how}(i8 {tile}, ptr %s{self.number}_{i}_{j}, i64 %s_step)"
            for i, j, tile in self.sums
        ]

    def _loop(self) -> list[str]:
        """Along the sums, a tile of each operand after another."""
        n, steps = self.number, self.product.inner // self.product.instruction.inner
        return [
            f"  br label %sum{n}",
            f"sum{n}:",
            f"  %k{n} = phi i64 [ 0, %part{n} ], [ %next{n}, %sum{n} ]",
            *self._read_data(),
            *self._read_weights(),
            *self._multiply(),
            f"  %next{n} = add i64 %k{n}, 1",
            f"  %more{n} = icmp ult i64 %next{n}, {steps}",
            f"  br i1 %more{n}, label %sum{n}, label %end{n}",
        ]

    def _read_data(self) -> list[str]:
        n = self.number
        lines = [f"  %in_row{n} = mul i64 %k{n}, {_ROW_BYTES}"]
        for i in range(len(self.down)):
            lines += [
                f"  %x{n}_{i}_k = getelementptr i8, ptr %x{n}_{i}, i64 %in_row{n}",
                f"  call void @llvm.x86.tileloadd64(i8 {_DATA[i]}, ptr %x{n}_{i}_k, i64 %x_step)",
            ]
        return lines

    def _read_weights(self) -> list[str]:
        n, row_bytes = self.number, self.product.columns * _LANE_BYTES
        lines = [f"  %below{n} = mul i64 %k{n}, {SIDE * row_bytes}"]
        for j in self.across:
            lines += [
                f"  %w{n}_{j}_at = add i64 %below{n}, {j * _ROW_BYTES}",
                f"  %w{n}_{j} = getelementptr i8, ptr %w, i64 %w{n}_{j}_at",
                f"  call void @llvm.x86.tileloadd64(i8 {_WEIGHTS[j]}, ptr %w{n}_{j}, i64 {row_bytes})",
            ]
        return lines

    def _multiply(self) -> list[str]:
        name = self.product.instruction.llvm
        return [
            f"  call void @{name}(i8 {tile}, i8 {_DATA[i]}, i8 {_WEIGHTS[j]})" for i, j, tile in self.sums
        ]
