"""The networks that are compared on GPUs, written with PyTorch and torchvision alone; weights are random."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from real_architectures import Tagger, UNet, audio

CONVOLUTIONS, TRANSFORMERS = ("float32", "float16"), ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network for a batch: `make` returns the module and its inputs."""

    make: Callable[[int], tuple[nn.Module, tuple[Any, ...]]]
    dtypes: tuple[str, ...]
    batches: tuple[int, ...] = (1, 16)


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """One line of the comparison."""

    network: str
    dtype: str
    batch: int

    def __str__(self) -> str:
        return f"{self.network}:{self.dtype}:{self.batch}"

    @property
    def file(self) -> str:
        """A name for files of this row."""
        return f"{self.network}_{self.dtype}_{self.batch}"

    @classmethod
    def read(cls, text: str) -> "Row":
        """The row that a whole name stands for."""
        network, dtype, batch = text.split(":")
        return cls(network, dtype, int(batch))


def rows(wanted: Sequence[str]) -> list[Row]:
    """All rows, or those that begin with one of these texts, in the order of the texts.

    A text is NAME, NAME:DTYPE or NAME:DTYPE:BATCH; raises SystemExit for one that fits nothing.
    """
    known = [
        Row(name, dtype, batch)
        for name, network in NETWORKS.items()
        for dtype in network.dtypes
        for batch in network.batches
    ]
    if not wanted:
        return known
    found = {text: [row for row in known if f"{row}:".startswith(f"{text}:")] for text in wanted}
    for text, some in found.items():
        if not some:
            raise SystemExit(f"no row {text!r}; rows are NETWORK:DTYPE:BATCH with {', '.join(NETWORKS)}")
    return list(dict.fromkeys(row for some in found.values() for row in some))


def made(row: Row, dtype: str | None = None) -> tuple[nn.Module, tuple[Any, ...]]:
    """The module and inputs of a row; with another type, the same numbers in that.

    Inputs are rounded to the row's own type first, so that both compute with the same ones.
    """
    torch.manual_seed(0)
    module, inputs = NETWORKS[row.network].make(row.batch)
    with_statistics(module, inputs)
    own, other = getattr(torch, row.dtype), getattr(torch, dtype or row.dtype)
    values = tuple(value.to(own).to(other) if value.is_floating_point() else value for value in inputs)
    return module.eval().to(other), values


def with_statistics(module: nn.Module, inputs: Sequence[Any]) -> None:
    """Have batch norms return values of size one for random data, the same in every batch size.

    With those of a new module, signals shrink from layer to layer until float16 holds only zeros.
    """
    module.eval()
    norms = [part for part in module.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    hooks = [norm.register_forward_pre_hook(_fit_variance) for norm in norms]
    if norms:
        sample = torch.randn(1, *inputs[0].shape[1:], generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            module(sample)
    for hook in hooks:
        hook.remove()


def _fit_variance(norm: Any, inputs: Sequence[Any]) -> None:
    """Take a batch norm's variance from its input, one for all channels.

    Means stay zero: channels of random networks hardly vary, and without a mean rounding is all they have.
    """
    norm.running_var.fill_(inputs[0].square().mean())


def vision(name: str, dtypes: tuple[str, ...] = CONVOLUTIONS) -> Network:
    """A network of torchvision on images."""

    def make(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
        import torchvision

        return torchvision.models.get_model(name, weights=None), (torch.randn(batch, 3, 224, 224),)

    return Network(make=make, dtypes=dtypes)


class Attention(nn.Module):
    """Heads of 64 over a sequence; further keys and values may stand before its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.joined, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any, mask: Any = None, before: Any = None) -> tuple[Any, Any]:
        batch, length, width = x.shape
        parts = self.joined(x).reshape(batch, length, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        query, new = parts[0], parts[1:]
        key, value = new[0], new[1]
        if before is not None:
            key, value = torch.cat([before[0], key], 2), torch.cat([before[1], value], 2)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width)), new


class Layer(nn.Module):
    """Attention and a perceptron, each added to what came in; norms stand before them, or behind."""

    def __init__(self, width: int, norm_first: bool = True) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any, mask: Any = None, before: Any = None) -> tuple[Any, Any]:
        first, second = self.norms
        if self.norm_first:
            mixed, new = self.attention(first(x), mask, before)
            x = x + mixed
            return x + self.narrow(functional.gelu(self.wide(second(x)))), new
        mixed, new = self.attention(x, mask, before)
        x = first(x + mixed)
        return second(x + self.narrow(functional.gelu(self.wide(x)))), new


class Encoder(nn.Module):
    """Layers one after another."""

    def __init__(self, layers: int, width: int, norm_first: bool = True) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(width, norm_first) for _ in range(layers)])

    def forward(self, x: Any, mask: Any = None) -> Any:
        for layer in self.layers:
            x, _ = layer(x, mask)
        return x


class Bert(nn.Module):
    """BERT-base: words and a mask in, a vector for each word out."""

    def __init__(self, words: int = 30522, width: int = 768, longest: int = 512) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.norm, self.layers = nn.LayerNorm(width), Encoder(12, width, norm_first=False)

    def forward(self, words: Any, mask: Any) -> Any:
        x = self.norm(self.words(words) + self.places.weight[: words.shape[1]])
        hidden = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        return self.layers(x, hidden)


class Whisper(nn.Module):
    """The encoder of Whisper-tiny on half a minute of sound."""

    def __init__(self, width: int = 384, length: int = 1500) -> None:
        super().__init__()
        self.first = nn.Conv1d(80, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.places = nn.Parameter(torch.randn(length, width) / 10)
        self.layers, self.norm = Encoder(4, width), nn.LayerNorm(width)

    def forward(self, sound: Any) -> Any:
        x = functional.gelu(self.second(functional.gelu(self.first(sound))))
        return self.norm(self.layers(x.transpose(1, 2) + self.places))


class Decoder(nn.Module):
    """One step of GPT-2 small: a word and what the cache has of those before; logits and its news out."""

    def __init__(self, words: int = 50257, layers: int = 12, width: int = 768) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.layers = nn.ModuleList([Layer(width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, word: Any, cache: Any) -> tuple[Any, Any]:
        x = self.words(word) + self.places.weight[cache.shape[4]]
        news = []
        for number, layer in enumerate(self.layers):
            x, new = layer(x, None, cache[number])
            news.append(new)
        return functional.linear(self.norm(x), self.words.weight), torch.stack(news)


def vit_s(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    from torchvision.models import VisionTransformer

    module = VisionTransformer(
        image_size=224, patch_size=16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536
    )
    nn.init.normal_(module.heads.head.weight, std=0.02)  # torchvision's zeros would hide all differences
    return module, (torch.randn(batch, 3, 224, 224),)


def bert(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    mask = torch.ones(batch, 128, dtype=torch.int64)
    mask[:, 120:] = 0
    return Bert(), (torch.randint(0, 30000, (batch, 128)), mask)


def decoder(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    return Decoder(), (torch.randint(0, 50000, (batch, 1)), torch.randn(12, 2, batch, 12, 512, 64))


def tagger(cell: type[nn.RNNBase]) -> Network:
    return Network(
        make=lambda batch: (Tagger(cell), (torch.randint(0, 2000, (batch, 40)),)), dtypes=("float32",)
    )


NETWORKS: dict[str, Network] = {
    "resnet18": vision("resnet18"),
    "resnet50": vision("resnet50"),
    "mobilenet_v2": vision("mobilenet_v2"),
    "efficientnet_b0": vision("efficientnet_b0"),
    "convnext_tiny": vision("convnext_tiny"),
    "encoder": Network(
        make=lambda batch: (Encoder(4, 512), (torch.randn(batch, 256, 512),)), dtypes=TRANSFORMERS
    ),
    "vit_s": Network(make=vit_s, dtypes=TRANSFORMERS),
    "bert_base": Network(make=bert, dtypes=TRANSFORMERS),
    "swin_t": vision("swin_t", TRANSFORMERS),
    "whisper_tiny": Network(
        make=lambda batch: (Whisper(), (torch.randn(batch, 80, 3000),)), dtypes=TRANSFORMERS
    ),
    "gpt_step": Network(make=decoder, dtypes=("float16",), batches=(1, 8)),
    "unet": Network(make=lambda batch: (UNet(), (torch.randn(batch, 3, 128, 128),)), dtypes=("float32",)),
    "audio": Network(make=lambda batch: (audio(), (torch.randn(batch, 1, 16000),)), dtypes=("float32",)),
    "lstm_tagger": tagger(nn.LSTM),
    "gru_tagger": tagger(nn.GRU),
}
