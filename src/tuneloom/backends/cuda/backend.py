"""GPUs of NVIDIA as a backend."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar

from tuneloom.backends.base import Backend, Clock
from tuneloom.backends.cuda.cublaslt.implementer import CublasImplementer
from tuneloom.backends.cuda.cudnn.implementer import CudnnImplementer
from tuneloom.backends.cuda.default_schedules import default_schedules
from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.headers import require_compiler
from tuneloom.backends.cuda.passes.attention import attention_as_one
from tuneloom.backends.cuda.passes.channels_last import channels_last, gates_apart
from tuneloom.backends.cuda.passes.eights import (
    BETWEEN,
    EIGHT,
    EightQuantiser,
    products_in_eight,
    roundings_spelled_out,
)
from tuneloom.backends.cuda.passes.halves import products_in_half
from tuneloom.backends.cuda.passes.moves import moves_before
from tuneloom.backends.cuda.passes.norms import norms_folded
from tuneloom.backends.cuda.passes.precision import halved
from tuneloom.backends.cuda.passes.rms_norms import rms_norms_as_one
from tuneloom.backends.cuda.passes.rounding import weights_rounded
from tuneloom.backends.cuda.passes.scratch import scratch_outside
from tuneloom.backends.cuda.passes.side_by_side import products_joined
from tuneloom.backends.cuda.passes.spelled_out import attention_loops
from tuneloom.backends.cuda.passes.turned_loops import turned_loops
from tuneloom.backends.cuda.passes.views import reshapes_behind, splits_as_slices
from tuneloom.backends.cuda.stopwatch import Stopwatch
from tuneloom.backends.cuda.target import CudaTarget, cuda_target, require_memory
from tuneloom.backends.cuda.tf32 import TF32, step_in_tf32
from tuneloom.backends.cuda.triton.implementer import TritonImplementer
from tuneloom.backends.cuda.watching import watch_first
from tuneloom.backends.implementers import Implementer
from tuneloom.backends.meaning import Meaning, MeaningStep
from tuneloom.backends.watching import ConditionWatch
from tuneloom.compiler.fast_import import load_intrinsics, load_tvm
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.number_types import HALF
from tuneloom.compiler.passes import folding, own_pass
from tuneloom.compiler.target import TargetSpec
from tuneloom.compiler.uneven_windows import adaptive_means
from tuneloom.errors import TargetError
from tuneloom.gpus import visible_gpus
from tuneloom.model import MeasuringRules

CHANNELS_LAST = "channels_last"


class CudaBackend(Backend):
    """Loops bound to threads, by TVM's schedules or by its defaults."""

    name: ClassVar[str] = "cuda"
    kinds: ClassVar[tuple[str, ...]] = ("cuda",)
    binds_threads: ClassVar[bool] = True
    layouts: ClassVar[tuple[str, ...]] = (CHANNELS_LAST, "channels_first")
    good_guesses: ClassVar[bool] = True
    steady: ClassVar[bool] = True
    builds_anywhere: ClassVar[bool] = True
    readers_in_place: ClassVar[frozenset[str]] = frozenset(("relax.nn.attention", "relax.nn.attention_bias"))
    readers_of_rows: ClassVar[frozenset[str]] = frozenset(
        ("relax.matmul", "relax.nn.layer_norm", "relax.nn.rms_norm")
    )

    def resolve(self, config: dict[str, Any], cores: int) -> CudaTarget:
        return cuda_target(config)

    def dtypes(self, target: TargetSpec) -> frozenset[str]:
        gpu = Gpu.of(target.config)
        able = {"float16": "float16", "bfloat16": "bfloat16", "fp8": EIGHT, **dict.fromkeys(TF32, "bfloat16")}
        found = [name for name, kind in able.items() if gpu is not None and gpu.computes(kind)]
        return frozenset(("float32", *found))

    def quantiser(self, target: TargetSpec) -> EightQuantiser:
        return EightQuantiser()

    def laying_out(self, target: TargetSpec, dtype: str) -> list[Any]:
        return self.laying_out_in(CHANNELS_LAST, target, dtype)

    def laying_out_in(self, layout: str, target: TargetSpec, dtype: str) -> list[Any]:
        from tvm.relax import transform

        in_half = own_pass("ProductsInHalf", products_in_half)
        half = BETWEEN if dtype == "fp8" else dtype
        halving = [own_pass("Halved", lambda module: halved(module, half)), in_half]
        if dtype == "fp8":
            halving.append(own_pass("RoundingsSpelledOut", roundings_spelled_out))
        narrowing = (
            own_pass("ProductsInEight", lambda module: reshapes_behind(products_in_eight(module), 3)),
        )
        return [
            transform.CanonicalizeBindings(),
            own_pass("SplitsAsSlices", splits_as_slices),
            in_half,  # folding would widen weights
            folding(),  # so that masks and biases are known
            own_pass("NormsFolded", norms_folded),
            own_pass("NormsAsOne", rms_norms_as_one),
            own_pass("AttentionAsOne", attention_as_one),
            *(halving if half in HALF else ()),
            own_pass("WeightsRounded", lambda module: weights_rounded(module, dtype)),
            *((own_pass("ChannelsLast", channels_last),) if layout == CHANNELS_LAST else ()),
            transform.EliminateCommonSubexpr(),
            own_pass("ReshapesBehind", reshapes_behind),
            transform.EliminateCommonSubexpr(),
            transform.CanonicalizeBindings(),
            own_pass("MovesBefore", lambda module: reshapes_behind(moves_before(module))),
            transform.CanonicalizeBindings(),
            own_pass("ProductsJoined", products_joined),
            *(narrowing if dtype == "fp8" else ()),
            own_pass("GatesApart", gates_apart),
        ]

    def further_attributes(self, dtype: str, meaning: Meaning, step: MeaningStep) -> Mapping[str, Any]:
        return {"precision": "tf32"} if step_in_tf32(dtype, meaning, step) else {}

    def legalisers(self) -> Mapping[str, Any]:
        attention = dict.fromkeys(self.readers_in_place, attention_loops)
        return {**attention, **turned_loops(), **adaptive_means()}

    def finishing(self, target: TargetSpec) -> list[Any]:
        from tvm.relax.backend.cuda import pipeline  # its package forgets to export one of the two

        tvm_target, transform = target.to_tvm(), relax.transform
        lowering = [*pipeline.dataflow_lower_passes(tvm_target), *pipeline.finalize_passes(tvm_target)]
        views = [transform.RewriteDataflowReshape(), transform.DeadCodeElimination()]
        outside = own_pass("ScratchOutside", scratch_outside)
        compiling = own_pass("CompilerIsThere", require_compiler)
        return [*views, default_schedules(), compiling, outside, *lowering]

    def default_module(self, module: Any, target: TargetSpec) -> Any:
        copy = load_tvm().IRModule(dict(module.functions.items()))  # the pass would change its argument
        with target.to_tvm():
            return default_schedules()(copy)

    def model_settings(self, target: TargetSpec) -> dict[str, Any]:
        """Whole stretches of kernels are launched as one graph."""
        return {"relax.backend.use_cuda_graph": True}

    def stopwatch(self, run: Callable[[], Any], device: Any) -> Clock:
        return Stopwatch(run, device)

    def measuring(self, rules: MeasuringRules) -> MeasuringRules:
        """A GPU's own clock hardly varies: some milliseconds tell as much as the usual twenty."""
        return replace(rules, min_repeat_ms=4.0, hopeless_ratio=2.0)

    def implementers(self, target: TargetSpec) -> Sequence[Implementer]:
        triton = (TritonImplementer(),) if find_spec("triton") is not None else ()
        return (*triton, CublasImplementer(), CudnnImplementer()) if shutil.which("cc") else triton

    def require_builder(self) -> None:
        if find_spec("triton") is None:
            raise TargetError(
                "building for a GPU that is not here needs Triton; pip install 'tuneloom[triton]'"
            )

    def require_memory(self, weight_bytes: int, value_bytes: int, target: TargetSpec) -> None:
        require_memory(weight_bytes, value_bytes, target.family)

    def watch(self) -> ConditionWatch | None:
        return watch_first()

    def warm_up(self) -> None:
        with suppress(TargetError):  # whoever needs the driver hears that it does not answer
            if visible_gpus():
                load_intrinsics(self.kinds[0])


BACKEND = CudaBackend()
