"""GPU kernels from templates against PyTorch, cuBLASLt and cuDNN: checks all cases, then times real shapes.

    python benchmarks/gpu_templates.py [--count 48] [--only TEXT] [--rows FILE.jsonl] [--out FILE.json]

Needs a GPU, PyTorch and Triton, but neither TVM nor a store. Kernels are compiled in processes that see no
GPU, and timed in CUDA graphs, inputs rotated where they would fit the cache otherwise.
"""

import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import tests_on_path  # noqa: F401
from gpu_models import append, commit
from support.kernels import cases
from tuneloom.backends.cuda.cublaslt.implementer import CublasImplementer
from tuneloom.backends.cuda.cudnn.implementer import CudnnImplementer
from tuneloom.backends.cuda.library_calls import WORKSPACE_BYTES, LibraryImplementer
from tuneloom.backends.cuda.triton.implementer import TritonImplementer, triton_claim
from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.meaning import Meaning
from tuneloom.backends.resolving import resolve_target
from tuneloom.model.trial import Failure

TARGET = {"kind": "cuda", "arch": "sm_90"}
WRONG = 2e-2
"""How far outputs may be off, against their size."""


def problems() -> dict[str, Meaning]:
    """Kernels of real networks by name."""
    found: dict[str, Meaning] = {}
    for rows, columns, depth in (
        (4096, 4096, 4096), (1024, 1024, 1024), (256, 2048, 512), (256, 512, 2048), (256, 512, 512),
        (197, 1152, 384), (197, 1536, 384), (197, 384, 1536), (128, 3072, 768), (128, 768, 3072),
        (128, 768, 768), (3152, 1536, 384), (2048, 3072, 768), (1, 3072, 768), (8, 768, 3072),
    ):  # fmt: skip
        found[f"gelu {rows}x{columns}x{depth} float16"] = cases.product_with_gelu(rows, columns, depth)
    found["gelu 4096x4096x4096 bfloat16"] = cases.product_with_gelu(4096, 4096, 4096, "bfloat16")
    for rows, columns, depth in ((256, 2048, 512), (1024, 1024, 1024), (197, 1536, 384)):
        name = f"gelu {rows}x{columns}x{depth}"
        found[f"{name} float32"] = cases.product_with_gelu(rows, columns, depth, "float32")
        found[f"{name} tf32"] = cases.product_with_gelu(rows, columns, depth, "float32", precision="tf32")
    found["plain 4096x4096x4096 float8"] = cases.plain_product(4096, 4096, 4096, "float8_e4m3fn")
    for length, heads, causal in (
        (4096, 8, None), (4096, 8, "TopLeft"), (1024, 8, None), (1024, 8, "TopLeft"),
        (256, 8, None), (128, 12, None),
    ):  # fmt: skip
        name = f"attention {heads}x{length}x64{' causal' if causal else ''} float16"
        found[name] = cases.attention(length, length, heads, 64, causal=causal)
    found["attention 6x197x64 float16 written out"] = cases.written_out_attention(197, 6, 64)
    for keys, heads in ((512, 12), (513, 12), (513, 96), (4096, 8)):
        found[f"attention {heads}x1 of {keys}x64 float16"] = cases.attention(1, keys, heads, 64)
    found["attention 192x49x32 with bias float16"] = cases.attention(49, 49, 192, 32, bias=True)
    found["attention 6x1500x64 float16"] = cases.attention(1500, 1500, 6, 64)
    found["attention in place 2x12x128x64 float16"] = cases.attention_in_place(128, 12, 64)
    for rows, width in ((256, 512), (197, 384), (128, 768), (4096, 4096)):
        found[f"layer norm {rows}x{width} float16"] = cases.layer_norm(rows, width)
    found["softmax 4096x4096 float16"] = cases.softmax(4096, 4096)
    for image, filters, size, stride in (
        ((1, 56, 56, 64), 64, 3, 1), ((1, 28, 28, 128), 128, 3, 1), ((1, 14, 14, 256), 256, 3, 1),
        ((1, 7, 7, 512), 512, 3, 1), ((1, 56, 56, 256), 64, 1, 1), ((1, 14, 14, 1024), 256, 1, 1),
        ((1, 224, 224, 3), 64, 7, 2), ((16, 28, 28, 128), 128, 3, 1), ((16, 14, 14, 256), 256, 3, 1),
    ):  # fmt: skip
        name = f"convolution {'x'.join(map(str, image))} {filters} of {size} by {stride}"
        for dtype in ("float16", "float32") if image[0] == 1 and size == 3 else ("float16",):
            found[f"{name} {dtype}"] = cases.convolution(image, filters, size, dtype, stride=stride)
    for image, stride in (((1, 112, 112, 32), 1), ((1, 14, 14, 384), 1), ((16, 28, 28, 192), 2)):
        name = f"depthwise {'x'.join(map(str, image))} by {stride} float16"
        found[name] = cases.convolution(image, image[3], 3, stride=stride, groups=image[3])
    found["attention 8x256x64 float32"] = cases.attention(256, 256, 8, 64, "float32")
    return found


def configurations(claim: Any, count: int, seed: int = 1) -> list[dict[str, int]]:
    """The claim's guesses, random neighbours of the first of them, and random valid configurations."""
    chosen = [dict(each) for each in claim.space.guesses][: max(count // 2, 1)]
    source, knobs = random.Random(seed), claim.space.knobs
    starts = chosen[:8]
    for _ in range(count * 50):
        if source.random() < 0.8:
            changed = source.sample(list(knobs), min(len(knobs), source.randint(1, 3)))
            each = {**source.choice(starts), **{name: source.choice(knobs[name]) for name in changed}}
        else:
            each = {name: source.choice(values) for name, values in knobs.items()}
        if len(chosen) < count and each not in chosen and not claim.refusal(each):
            chosen.append(each)
    return chosen


def build(meaning_text: str, configuration: dict[str, int]) -> Any:
    """Compile in a process without a GPU; returns the code or a failure, and the seconds it took."""
    start, implementer = time.perf_counter(), TritonImplementer()
    claim = triton_claim(Meaning.from_json(meaning_text), TARGET)
    assert claim is not None
    return implementer.build(claim, configuration), time.perf_counter() - start


def tensors(meaning: Meaning, seed: int = 0) -> list[Any]:
    """Random inputs on the GPU."""
    import torch

    source = torch.Generator(device="cuda").manual_seed(seed)
    found = []
    for each in meaning.inputs:
        dtype = getattr(torch, each.dtype)
        if each.dtype == "bool":
            found.append(torch.rand(each.shape, device="cuda", generator=source) < 0.7)
        elif "int" in each.dtype:
            found.append(torch.randint(-5, 6, each.shape, device="cuda", generator=source, dtype=dtype))
        else:
            found.append(torch.randn(each.shape, device="cuda", generator=source).to(dtype))
    return found


def reference(meaning: Meaning, inputs: Sequence[Any], double: bool) -> list[Any]:
    """The same by PyTorch's operators: in double precision to check, in the kernel's own types to race."""
    import torch
    from torch.nn import functional

    def convolve(step: Any, x: Any, weight: Any) -> Any:
        a = step.attributes
        image = x.permute(0, 3, 1, 2) if a["data_layout"] == "NHWC" else x
        kernel = weight.permute([a["kernel_layout"].index(axis) for axis in "OIHW"])
        top, left, bottom, right = a["padding"]
        assert (top, left) == (bottom, right)
        y = functional.conv2d(image, kernel, None, a["strides"], (top, left), a["dilation"], a["groups"])
        return y.permute(0, 2, 3, 1) if a["data_layout"] == "NHWC" else y

    def attend(step: Any, q: Any, k: Any, v: Any, bias: Any = None) -> Any:
        repeat = q.shape[2] // k.shape[2]
        k, v = (each.repeat_interleave(repeat, 2) if repeat > 1 else each for each in (k, v))
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        causal = step.attributes["causal_mask"]
        if causal == "BottomRight":
            bias = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(
                k.shape[2] - q.shape[2]
            )
        mask = {"attn_mask": bias} if bias is not None else {"is_causal": causal == "TopLeft"}
        scale = step.attributes["scale"]
        return functional.scaled_dot_product_attention(q, k, v, **mask, scale=scale).transpose(1, 2)

    def take(step: Any, x: Any, numbers: Any) -> Any:
        axis = step.attributes["axis"]
        found = x.index_select(axis, numbers.clamp(0, x.shape[axis] - 1).flatten())
        return found.reshape(step.result.shape)

    def pool(step: Any, x: Any) -> Any:
        a, image = step.attributes, x.permute(0, 3, 1, 2) if step.attributes["layout"] == "NHWC" else x
        size = (a["pool_size"], a["strides"], a["padding"][:2])
        largest = step.operator == "relax.nn.max_pool2d"
        y = (
            functional.max_pool2d(image, *size)
            if largest
            else functional.avg_pool2d(image, *size, count_include_pad=False)
        )
        return y.permute(0, 2, 3, 1) if a["layout"] == "NHWC" else y

    def slice_of(step: Any, x: Any) -> Any:
        (axis,), (begin,), (end,) = (step.attributes[name] for name in ("axes", "begin", "end"))
        return x.narrow(axis, begin, end - begin)

    def product(step: Any, a: Any, b: Any) -> Any:
        return (a.double() @ b.double()).to(torch.int32) if a.dtype == torch.int8 else a @ b

    def wide(x: Any) -> Any:
        return x.double() if double and x.is_floating_point() else x

    functions: dict[str, Callable[..., Any]] = {
        "const": lambda step: step.attributes["value"],
        "matmul": product,
        "nn.gelu": lambda step, x: functional.gelu(x),
        "nn.gelu_tanh": lambda step, x: functional.gelu(x, approximate="tanh"),
        "nn.silu": lambda step, x: functional.silu(x),
        "nn.relu": lambda step, x: functional.relu(x),
        "clip": lambda step, x: x.clamp(step.attributes["min"], step.attributes["max"]),
        "astype": lambda step, x: x if double else x.to(getattr(torch, step.result.dtype)),
        "reshape": lambda step, x: x.reshape(step.result.shape),
        "expand_dims": lambda step, x: x.reshape(step.result.shape),
        "broadcast_to": lambda step, x: x.expand(step.result.shape),
        "concat": lambda step, *parts: torch.cat(parts, step.attributes["axis"]),
        "take": take,
        "permute_dims": lambda step, x: x.permute(step.attributes["axes"]),
        "strided_slice": slice_of,
        "nn.softmax": lambda step, x: x.softmax(step.attributes["axis"]),
        "nn.layer_norm": lambda step, x, g, b: functional.layer_norm(
            x, g.shape, g, b, step.attributes["epsilon"]
        ),
        "nn.rms_norm": lambda step, x, g: functional.rms_norm(x, g.shape, g, step.attributes["epsilon"]),
        "mean": lambda step, x: x.mean(step.attributes["axis"], keepdim=step.attributes["keepdims"]),
        "power": lambda step, x, y: x**y,
        "maximum": lambda step, x, y: torch.maximum(x, y),
        "nn.attention": attend,
        "nn.attention_bias": attend,
        "nn.conv2d": convolve,
        "nn.max_pool2d": pool,
        "nn.avg_pool2d": pool,
    }
    values = [wide(each) for each in inputs]
    for step in meaning.steps:
        name = step.operator.removeprefix("relax.")
        function = functions.get(name)
        operands = [values[each] for each in step.operands]
        values.append(function(step, *operands) if function else getattr(torch, name)(*operands))
    return [values[each] for each in meaning.outputs]


def difference(got: Any, right: Any) -> float:
    """How far an output is off, relative to its size."""
    got, right = got.double(), right.double()
    return (
        float((got - right).norm() / right.norm().clamp_min(1e-30))
        if bool(got.isfinite().all())
        else float("inf")
    )


def timed(launches: Sequence[Callable[[], Any]], goal_s: float = 0.003) -> float:
    """Microseconds of one launch in a CUDA graph, the launches taken in turn; the median of five replays."""
    import torch

    for each in launches:
        each()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(3):
        launches[0]()
    torch.cuda.synchronize()
    once = (time.perf_counter() - start) / 3
    count = max(len(launches), min(200, int(goal_s / max(once, 2e-6)) // len(launches) * len(launches)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(count):
            launches[number % len(launches)]()
    seconds = []
    for _ in range(6):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        before.record()
        graph.replay()
        after.record()
        torch.cuda.synchronize()
        seconds.append(before.elapsed_time(after) * 1e3 / count)
    return float(statistics.median(seconds[1:]))


def vendor_times(meaning: Meaning, sets: Sequence[Any], right: Sequence[Any]) -> dict[str, Any]:
    """What the algorithms of each library that takes a kernel need, by the library's name."""
    kernel = ModelKernel(module=None, meaning=meaning, target=resolve_target(json.dumps(TARGET)))
    found = {}
    for implementer in (CublasImplementer(), CudnnImplementer()):
        claim = implementer.claim(kernel)
        if claim is not None:
            found[implementer.name] = algorithms_of(implementer, claim, sets, right)
    return found


def algorithms_of(
    implementer: LibraryImplementer, claim: Any, sets: Sequence[Any], right: Sequence[Any]
) -> list[dict[str, Any]]:
    """What a library's algorithms take, in its own order, as many as it has."""
    import torch

    found: list[dict[str, Any]] = []
    workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
    out = torch.empty(right[0].shape, dtype=getattr(torch, claim.result.dtype), device="cuda")
    pointed = (*claim.factors, claim.epilogue.bias, claim.epilogue.residual)
    for algorithm in claim.space.knobs["algorithm"]:
        function = linked(implementer.build(claim, {"algorithm": algorithm}, "by_library"))

        def launch(inputs: Any, function: Any = function) -> None:
            tensors = (*(None if each is None else inputs[each] for each in pointed), workspace, out)
            pointers = [ctypes.c_void_p(0 if each is None else each.data_ptr()) for each in tensors]
            status = function(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), *pointers)
            if status:
                raise RuntimeError(f"status {status}")

        try:
            out.fill_(float("nan"))
            launch(sets[0])
            off = difference(out, right[0])
            us = timed([partial(launch, inputs) for inputs in sets])
        except RuntimeError:  # the list is shorter
            break
        if off < WRONG:
            found.append({"algorithm": algorithm, "us": us, "off": off})
    return found


def linked(code: bytes | Failure) -> Any:
    """The C function of an object file, on a stream of the caller's."""
    assert isinstance(code, bytes), code
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "it.o").write_bytes(code)
        subprocess.run(["cc", "-shared", "-o", f"{folder}/it.so", f"{folder}/it.o", "-ldl"], check=True)
        return ctypes.CDLL(f"{folder}/it.so").by_library_on


def checked_cases(pool: ProcessPoolExecutor) -> list[dict[str, Any]]:
    """Every case of the contract, with its guesses and some more, on the GPU."""
    from support.kernels.launching import LoadedCode

    jobs = []
    for name, (_, make) in cases.CASES.items():
        meaning = make()
        claim = triton_claim(meaning, TARGET)
        assert claim is not None, name
        jobs += [
            (name, meaning, each, pool.submit(build, meaning.to_json(), each))
            for each in configurations(claim, 10)
        ]
    rows: dict[str, dict[str, Any]] = {}
    for name, meaning, configuration, future in jobs:
        row = rows.setdefault(name, {"case": name, "off": 0.0, "ran": 0, "failed": []})
        code, _ = future.result()
        if isinstance(code, Failure):
            row["failed"].append(code.message[:120])
            continue
        try:
            inputs = tensors(meaning)
            loaded = LoadedCode(meaning, code)
            loaded.launch(inputs)
            right = reference(meaning, inputs, double=True)
            off = max(difference(*pair) for pair in zip(loaded.outputs, right, strict=True))
        except RuntimeError as error:
            row["failed"].append(f"{configuration}: {str(error)[:120]}")
            continue
        row["ran"] += 1
        if off > row["off"]:
            row["off"], row["worst"] = off, configuration
    return list(rows.values())


def searched(name: str, meaning: Meaning, built: list[tuple[dict[str, int], Any]]) -> dict[str, Any]:
    """The fastest configuration of a problem, and PyTorch's time."""
    import torch

    from support.kernels.launching import LoadedCode

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = "tf32" in name
    torch.backends.cudnn.benchmark = True
    size = sum(each.numel() * each.element_size() for each in tensors(meaning))
    sets = [tensors(meaning, seed) for seed in range(max(1, min(8, int(160e6 / max(size, 1)))))]
    right = reference(meaning, sets[0], double=True)
    rows, failed, wrong = [], [], []
    for configuration, (code, seconds) in built:
        if isinstance(code, Failure):
            failed.append([configuration, code.message[:160]])
            continue
        try:
            loaded = LoadedCode(meaning, code)
            loaded.launch(sets[0])
            off = max(difference(*pair) for pair in zip(loaded.outputs, right, strict=True))
            if not off < WRONG:
                wrong.append([configuration, off])
                continue
            launches = [lambda inputs=inputs, loaded=loaded: loaded.launch(inputs) for inputs in sets]
            rows.append(
                {"us": timed(launches), "configuration": configuration, "off": off, "build_s": seconds}
            )
        except RuntimeError as error:
            failed.append([configuration, str(error)[:160]])
            print(f"{name}: {configuration}: {str(error)[:160]}", flush=True)
            break
    rows.sort(key=lambda row: row["us"])
    vendor = vendor_times(meaning, sets, right)
    try:
        ours = timed([partial(reference, meaning, inputs, double=False) for inputs in sets])
        own = difference(reference(meaning, sets[0], double=False)[0], right[0])
    except RuntimeError:  # PyTorch has no such kernel
        ours = own = float("nan")
    guessed = [row["us"] for row in rows if row["configuration"] == built[0][0]]
    return {
        "problem": name, "best": rows[:8], "torch_us": ours, "torch_off": own,
        "guess_us": guessed[0] if guessed else None, "libraries": vendor,
        "failed": failed[:4], "failures": len(failed), "wrong": wrong, "tried": len(built), "all": rows,
    }  # fmt: skip


def outcome(row: Mapping[str, Any]) -> dict[str, Any]:
    """The best time of each side, in microseconds."""
    best = row["best"][0] if row["best"] else {}
    names = {"problem": row["problem"], "tried": row["tried"], "torch_us": row["torch_us"]}
    found = names | {"ours_us": best.get("us"), "off": best.get("off"), "commit": commit()}
    for name in ("cublaslt", "cudnn"):
        times = [each["us"] for each in row["libraries"].get(name, ())]
        found |= {f"{name}_us": min(times, default=None), f"{name}_tried": len(times)}
    return found


def _without_gpu() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def main() -> None:
    """Check, search, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="", help="everything that was tried")
    parser.add_argument("--rows", type=Path, help="append what came of each problem")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--no-cases", action="store_true")
    asked = parser.parse_args()
    results: dict[str, Any] = {"problems": []}
    with ProcessPoolExecutor(asked.processes, get_context("spawn"), _without_gpu) as pool:
        start = time.perf_counter()
        work = {}
        for name, meaning in problems().items():
            if asked.only in name:
                claim = triton_claim(meaning, TARGET)
                assert claim is not None, name
                chosen = configurations(claim, asked.count)
                work[name] = (
                    meaning,
                    [(each, pool.submit(build, meaning.to_json(), each)) for each in chosen],
                )
        if not asked.no_cases:
            results["cases"] = checked_cases(pool)
            for row in results["cases"]:
                flag = "" if row["off"] < WRONG and not row["failed"] else "   <-- LOOK"
                print(
                    f"{row['case']:<34} ran {row['ran']:>2} off {row['off']:.2e} {row['failed'][:1]}{flag}",
                    flush=True,
                )
        for name, (meaning, futures) in work.items():
            try:
                row = searched(name, meaning, [(each, future.result()) for each, future in futures])
            except Exception as error:
                print(f"{name}: {str(error)[:200]}", flush=True)
                continue
            results["problems"].append(row)
            best: dict[str, Any] = (
                row["best"][0] if row["best"] else {"us": float("nan"), "configuration": {}}
            )
            print(
                f"{name:<52} {best['us']:8.2f} us  torch {row['torch_us']:8.2f}"
                f"  ratio {best['us'] / row['torch_us']:.2f}"
                f"  guess {row['guess_us'] or -1:8.2f}  failed {row['failures']} wrong {len(row['wrong'])}"
                f"  {list(best['configuration'].values())}",
                flush=True,
            )
            for library, every in row["libraries"].items():
                for each in sorted(every, key=lambda each: each["us"])[:1]:
                    print(f"    {library} {each['us']:.2f} us, algorithm {each['algorithm']} of {len(every)}")
            if asked.rows:
                append(asked.rows, outcome(row))
            if asked.out:
                Path(asked.out).write_text(json.dumps(results))
        print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
