"""Claims on kernels for GPUs: who takes what, and what is refused before anything is compiled."""

import pickle
import subprocess
import sys

import pytest

from support.kernels import cases
from support.kernels.meanings import MeaningWriter
from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import TritonClaim
from tuneloom.backends.cuda.triton.implementer import TritonImplementer, triton_claim
from tuneloom.backends.meaning import Meaning
from tuneloom.model.trial import Failure

HOPPER = {"kind": "cuda", "arch": "sm_90"}


def claimed(meaning: Meaning, arch: str = "sm_90") -> TritonClaim | None:
    return triton_claim(meaning, {"kind": "cuda", "arch": arch})


@pytest.mark.parametrize("name", cases.CASES)
def test_every_case_is_claimed_by_its_template(name: str) -> None:
    template, make = cases.CASES[name]
    claim = claimed(make())
    assert claim is not None and claim.template.name == template


@pytest.mark.parametrize("name", cases.CASES)
def test_guesses_are_valid_and_differ(name: str) -> None:
    claim = claimed(cases.CASES[name][1]())
    assert claim is not None and claim.space.guesses
    assert [claim.refusal(each) for each in claim.space.guesses] == [""] * len(claim.space.guesses)
    assert len({tuple(sorted(each.items())) for each in claim.space.guesses}) == len(claim.space.guesses)


@pytest.mark.parametrize("name", cases.CASES)
def test_a_meaning_survives_its_text(name: str) -> None:
    meaning = cases.CASES[name][1]()
    assert Meaning.from_json(meaning.to_json()) == meaning


def test_equal_kernels_have_equal_names_and_others_do_not() -> None:
    claims = [claimed(cases.product_with_gelu(64, 64, 64)) for _ in range(2)]
    first, second = (claim.program(claim.space.guesses[0]) for claim in claims if claim is not None)
    assert first == second
    other = claimed(cases.plain_product(64, 64, 64))
    assert other is not None
    assert other.program(other.space.guesses[0]).kernels[0].name != first.kernels[0].name


def test_what_exceeds_shared_memory_is_refused_by_architecture() -> None:
    meaning = cases.product_with_gelu(4096, 4096, 4096)
    wide = {"tile_m": 128, "tile_n": 256, "tile_k": 64, "warps": 8, "stages": 4, "group": 8, "split": 1}
    configuration = {**wide, "precision": 0, "persistent": 0, "descriptors": 0}
    hopper, ampere = claimed(meaning), claimed(meaning, "sm_80")
    assert hopper is not None and ampere is not None
    assert hopper.refusal(configuration) == ""
    assert "shared memory" in ampere.refusal(configuration)


def test_what_is_not_in_the_space_is_refused_without_building() -> None:
    claim = claimed(cases.product_with_gelu(64, 64, 64))
    assert claim is not None
    strange = {**claim.space.guesses[0], "warps": 3}
    failure = TritonImplementer().build(claim, strange)
    assert isinstance(failure, Failure) and "warps=3" in failure.message


@pytest.mark.parametrize(("rows", "columns", "depth"), [(784, 192, 768), (196, 384, 1536), (49, 3072, 768)])
def test_float32_is_first_multiplied_in_tiles_that_fit_into_registers(
    rows: int, columns: int, depth: int
) -> None:
    claim = claimed(cases.product_with_gelu(rows, columns, depth, "float32"))
    assert claim is not None
    for guess in claim.space.guesses[:4]:
        assert guess["precision"] == 1 and guess["tile_k"] <= 64
        assert 1024 <= guess["tile_m"] * guess["tile_n"] <= 4096 and guess["tile_m"] != guess["tile_n"]


def test_a_large_product_in_float32_is_first_multiplied_in_wide_tiles() -> None:
    claim = claimed(cases.product_with_gelu(3136, 1536, 384, "float32"))
    assert claim is not None
    assert [claim.space.guesses[0][name] for name in ("tile_m", "tile_n", "tile_k")] == [32, 128, 32]


@pytest.mark.parametrize(("hidden", "units"), [(96, 16), (16, 16), (30, 32), (128, 16)])
def test_many_units_of_a_recurrent_layer_are_first_shared_among_blocks(hidden: int, units: int) -> None:
    claim = claimed(cases.recurrent("lstm", 4, 1, hidden, 2))
    assert claim is not None and claim.space.guesses[0]["units"] == units


@pytest.mark.parametrize(("size", "block"), [(3, (4, 64)), (7, (8, 32))])
def test_blocks_of_large_windows_take_more_pixels_first(size: int, block: tuple[int, int]) -> None:
    claim = claimed(cases.convolution((1, 28, 28, 192), 192, size, "float32", groups=192))
    assert claim is not None and claim.template.name == "window"
    assert tuple(claim.space.guesses[0][name] for name in ("pixels", "channels")) == block


@pytest.mark.parametrize(("number", "size", "width"), [(1, 7, 2), (16, 7, 4), (16, 3, 7), (16, 1, 1)])
def test_threads_take_neighbouring_pixels_of_a_window_where_there_are_many(
    number: int, size: int, width: int
) -> None:
    claim = claimed(cases.convolution((number, 28, 28, 192), 192, size, groups=192))
    assert claim is not None and claim.space.guesses[0]["across"] == width


def test_a_record_from_before_pixels_were_taken_together_is_understood() -> None:
    claim = claimed(cases.convolution((1, 28, 28, 192), 192, 3, groups=192))
    assert claim is not None
    old = {"pixels": 4, "channels": 64, "warps": 4}
    assert claim.refusal(old) == "" and claim.program(old) == claim.program({**old, "across": 1})


def test_registers_bound_a_tile() -> None:
    claim = claimed(cases.product_with_gelu(1024, 1024, 1024))
    assert claim is not None
    large = {
        **claim.space.guesses[0],
        "tile_m": 256,
        "tile_n": 256,
        "tile_k": 32,
        "stages": 2,
        "split": 1,
        "warps": 2,
    }
    assert "registers" in claim.refusal(large)


def test_other_operators_and_types_are_not_claimed() -> None:
    w = MeaningWriter()
    x = w.input((4, 4), "float32")
    unknown = w.meaning(w.step("cumsum", (x,), (4, 4), "float32", axis=0))
    w = MeaningWriter()
    double = w.input((4, 4), "float64")
    exact = w.meaning(w.step("nn.relu", (double,), (4, 4), "float64"))
    assert claimed(unknown) is None and claimed(exact) is None


def test_bfloat16_needs_ampere_and_float8_hopper() -> None:
    bfloat, small = (
        cases.plain_product(64, 64, 64, "bfloat16"),
        cases.plain_product(64, 64, 64, "float8_e4m3fn"),
    )
    assert claimed(bfloat, "sm_75") is None and claimed(bfloat, "sm_80") is not None
    assert claimed(small, "sm_80") is None and claimed(small, "sm_90") is not None


@pytest.mark.parametrize("target", [{"kind": "llvm"}, {"kind": "cuda"}, {"kind": "cuda", "arch": "sm_61"}])
def test_no_claim_without_a_gpu_that_is_known(target: dict[str, str]) -> None:
    assert triton_claim(cases.plain_product(64, 64, 64), target) is None


def test_limits_follow_the_architecture() -> None:
    hopper, own = Gpu.of(HOPPER), Gpu.of({**HOPPER, "multiprocessors": 78})
    assert hopper is not None and own is not None
    assert (hopper.shared_bytes, hopper.multiprocessors, own.multiprocessors) == (227 * 1024, 132, 78)


def test_claims_travel_between_processes() -> None:
    claim = claimed(cases.attention(32, 32, 2, 16))
    assert claim is not None
    assert pickle.loads(pickle.dumps(claim)) == claim


def test_claiming_imports_neither_triton_nor_tvm() -> None:
    program = (
        "import sys; from support.kernels import cases;"
        "from tuneloom.backends.cuda.triton.implementer import triton_claim as T;"
        "assert T(cases.plain_product(64, 64, 64), {'kind': 'cuda', 'arch': 'sm_90'});"
        "assert not {'triton', 'tvm', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_kernels_can_be_named_after_a_symbol() -> None:
    claim = claimed(cases.product_with_gelu(16, 128, 512))
    assert claim is not None
    split = next(each for each in claim.space.everything() if each["split"] == 2 and not claim.refusal(each))
    named = claim.program(split).named("mine")
    assert [each.name for each in named.kernels] == ["mine_0", "mine_1"]
    assert "def mine_1(" in named.kernels[1].source


def test_only_persistent_products_with_descriptors_are_worth_building() -> None:
    claim = claimed(cases.product_with_gelu(4096, 4096, 4096))
    assert claim is not None
    tile = {**claim.space.guesses[0], "tile_m": 128, "tile_n": 128, "split": 1, "persistent": 1}
    assert "descriptors" in claim.refusal({**tile, "descriptors": 0})
    assert claim.refusal({**tile, "descriptors": 1}) == ""


def test_a_batch_beyond_the_grid_is_not_claimed() -> None:
    def batched(count: int) -> Meaning:
        w = MeaningWriter()
        x, y = w.input((count, 2, 16)), w.input((count, 16, 2))
        return w.meaning(w.step("matmul", (x, y), (count, 2, 2)))

    assert claimed(batched(65535)) is not None and claimed(batched(65536)) is None


def test_attention_with_more_warps_than_its_scores_need_is_refused() -> None:
    claim = claimed(cases.attention(256, 256, 8, 64, "float32"))
    assert claim is not None
    tile = {**claim.space.guesses[0], "tile_m": 64, "stages": 2}
    assert "too few" in claim.refusal({**tile, "tile_n": 16, "warps": 8})
    assert claim.refusal({**tile, "tile_n": 32, "warps": 8}) == ""


def test_large_products_are_tried_with_persistent_blocks_first() -> None:
    claim, little = (claimed(cases.product_with_gelu(n, n, n)) for n in (4096, 512))
    assert claim is not None and little is not None
    large, small = claim.space.guesses, little.space.guesses
    assert [each["persistent"] for each in large[:3]] == [1, 1, 1] and large[3]["persistent"] == 0
    assert (large[0]["tile_m"], large[0]["tile_n"], large[0]["stages"]) == (128, 256, 4)
    assert not any(each["persistent"] for each in small)


@pytest.mark.parametrize(("causal", "first"), [(None, (128, 128, 4)), ("TopLeft", (64, 128, 4))])
def test_long_attention_begins_with_the_tiles_that_were_fastest(
    causal: str | None, first: tuple[int, ...]
) -> None:
    claim = claimed(cases.attention(4096, 4096, 8, 64, causal=causal))
    assert claim is not None
    assert tuple(claim.space.guesses[0][name] for name in ("tile_m", "tile_n", "warps")) == first


@pytest.mark.parametrize(("columns", "depth"), [(768, 3072), (2304, 768), (1000, 2048)])
def test_a_product_of_one_row_begins_with_blocks_for_most_of_the_gpu(columns: int, depth: int) -> None:
    claim = claimed(cases.product_with_gelu(1, columns, depth))
    assert claim is not None and claim.template.name == "vector"
    (kernel,) = claim.program(claim.space.guesses[0]).kernels
    assert kernel.grid[0] >= 0.7 * claim.gpu.multiprocessors


def test_a_product_of_two_rows_is_left_to_tiles() -> None:
    claim = claimed(cases.product_with_gelu(2, 768, 3072))
    assert claim is not None and claim.template.name == "product"


def test_attention_of_one_row_over_a_cache_begins_with_several_warps() -> None:
    claim = claimed(cases.attention(1, 513, 12, 64))
    assert claim is not None
    first = claim.space.guesses[0]
    assert (first["tile_n"], first["warps"], first["split"]) == (64, 4, 8), "5.6 microseconds on an H200"


def test_large_tiles_of_half_precision_are_refused_for_exact_products() -> None:
    claim = claimed(cases.product_with_gelu(784, 768, 192, "float32"))
    assert claim is not None
    taken = {**claim.space.guesses[0], "tile_m": 64, "tile_n": 128, "tile_k": 64, "precision": 0, "split": 1}
    assert "slow to compile and to run" in claim.refusal(taken), "363 microseconds on an H200, loops take 21"
    assert not claim.refusal({**taken, "precision": 1})
