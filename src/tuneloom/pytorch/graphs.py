"""A graph of PyTorch with its weights: whether it can be compiled, and the name under which it is kept."""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.export.passes import move_to_device_pass
from torch.nn import functional

from tuneloom.errors import ModelError, TargetError
from tuneloom.pytorch.options import CompileOptions
from tuneloom.pytorch.varying import VaryingInputs
from tuneloom.tuners.tvm.models.remembering import surroundings

DEVICES = ("cpu", "cuda")
_TF32_FROM = (8, 0)
_TRAINED = {getattr(functional, name) for name in ("dropout", "dropout2d", "alpha_dropout", "batch_norm")}
PLAIN = frozenset((torch.Tensor, torch.nn.Parameter, torch.nn.Buffer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """What one call computes: in PyTorch by `run`, from `inputs` among its arguments and from `weights`.

    `content` is what another process needs to export it: an exported program, or a graph module, the
    arguments it is called with and the sizes that vary among them. `constants` are tensors of its own.
    """

    name: str
    run: Callable[..., Any] = field(repr=False)
    text: str = field(repr=False)
    inputs: tuple[int, ...]
    examples: tuple[Any, ...] = field(repr=False)
    weights: tuple[Any, ...] = field(repr=False)
    constants: tuple[Any, ...] = field(default=(), repr=False)
    content: Any = field(repr=False)
    varying: VaryingInputs | None = None
    """Inputs that may have other sizes than their examples."""

    @property
    def device(self) -> str:
        """The kind of device that all tensors are on; raises TargetError for others than ours."""
        require_one_device(self.name, (*self.weights, *self.examples))
        tensors = (one for one in (*self.weights, *self.examples) if isinstance(one, torch.Tensor))
        device = next((one.device.type for one in tensors), "cpu")
        if device not in DEVICES:
            raise TargetError(f"{self.name}: tensors are on {device}; move the model to cpu or cuda")
        return device

    def target(self, options: CompileOptions) -> str:
        """What it is compiled for: what was asked for, or else the device that its tensors are on."""
        if options.target in DEVICES and options.target != self.device:
            where = f"{self.name}: its tensors are on {self.device}, the target is {options.target}"
            raise TargetError(f"{where}; call .to({options.target!r}) or omit target")
        return options.target or self.device

    def dtype(self, options: CompileOptions) -> str:
        """The type it computes in: what was asked for, or else float32, with TF32 where PyTorch has it."""
        if options.dtype is not None or self.varying is not None:
            return options.dtype or "float32"
        single = any(getattr(one, "dtype", None) is torch.float32 for one in (*self.weights, *self.examples))
        return float32_of_pytorch(self.device) if single else "float32"

    def key(self, options: CompileOptions, dtype: str) -> str:
        """A name that only the same graph, weights, shapes, options, machine and programs give."""
        told = (self.text, self.target(options), dtype, torch.get_num_threads(), surroundings())
        digest = hashlib.blake2b(repr(told).encode(), digest_size=20)
        varying, open_ = self.varying, dict[int, Any]()
        if varying is not None:
            open_ = {**dict.fromkeys(varying.numbers), **varying.places}
        for place, one in enumerate(self.examples):
            form = (open_[place], str(getattr(one, "dtype", ""))) if place in open_ else _form(one)
            digest.update(repr(form).encode())
        for one in (*self.weights, *self.constants):
            digest.update(repr(_form(one)).encode())
            digest.update(_content(one))
        return digest.hexdigest()

    def write(self, folder: Path) -> Path:
        """Write what another process exports it from; raises ModelError if that can't be written."""
        exported = isinstance(self.content, torch.export.ExportedProgram)
        path = folder / ("graph.pt2" if exported else "graph.pt")
        try:
            if exported:
                torch.export.save(
                    move_to_device_pass(self.content, "cpu"), path
                )  # whoever builds sees no GPU
            else:
                torch.save(self.content, path)
        except Exception as error:
            raise ModelError(
                f"{self.name}: the graph can't be written: {str(error).splitlines()[0]}"
            ) from error
        return path


def float32_of_pytorch(device: str) -> str:
    """The type that PyTorch computes float32 in: on GPUs with TF32 in convolutions, unless told otherwise."""
    backends = torch.backends
    capability_of = getattr(torch.get_device_module(device), "get_device_capability", None)
    able = capability_of is not None and capability_of() >= _TF32_FROM
    if not able or backends.cudnn.conv.fp32_precision != "tf32":
        return "float32"
    rounded = backends.cuda.matmul.fp32_precision in ("tf32", "bf16")
    return "tf32" if rounded else "tf32_convolutions"


def require_inference(tensors: Sequence[Any], module: Any = None) -> None:
    """Raise ModelError if gradients are wanted, or if a graph trains."""
    if torch.is_grad_enabled() and any(getattr(one, "requires_grad", False) for one in tensors):
        raise ModelError("tuneloom compiles for inference only; call the model under torch.no_grad()")
    for node in module.graph.nodes if module is not None else ():
        if node.op == "call_function" and node.target in _TRAINED and _trains(node):
            raise ModelError("the model is in training mode; call model.eval() first")


def require_one_device(name: str, values: Sequence[Any]) -> None:
    """Raise TargetError if the tensors among some values are on several kinds of devices."""
    found = {one.device.type for one in values if isinstance(one, torch.Tensor)}
    if len(found) > 1:
        raise TargetError(f"{name}: tensors are on {' and '.join(sorted(found))}; move them to one")


def require_plain(tensors: Sequence[Any]) -> None:
    """Raise ModelError for tensors of somebody's own kind, whose memory we don't know."""
    odd = [type(one).__name__ for one in tensors if isinstance(one, torch.Tensor) and type(one) not in PLAIN]
    if odd:
        raise ModelError(f"a tensor of the type {odd[0]} can't be compiled")


def _trains(node: Any) -> bool:
    given = inspect.signature(node.target).bind(*node.args, **node.kwargs)
    given.apply_defaults()
    return bool(given.arguments["training"]) and given.arguments.get("p", 1.0) != 0


def _form(value: Any) -> Any:
    return (tuple(value.shape), str(value.dtype)) if isinstance(value, torch.Tensor) else value


def _content(tensor: Any) -> Any:
    """The bytes of a tensor, without a copy where it lies in one piece on the CPU."""
    return memoryview(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
