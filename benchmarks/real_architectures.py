"""Networks as people write them in PyTorch, without trained weights, exported in two formats.

    python benchmarks/real_architectures.py FOLDER [NAME…]

Needs torch, torchvision, transformers and onnxscript.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

Make = Callable[[], tuple[nn.Module, tuple[Any, ...]]]


def main() -> None:
    for path, module, inputs in asked_for(NETWORKS):
        write(module, inputs, path.parent, path.name)


def asked_for(networks: Mapping[str, Make]) -> Iterator[tuple[Path, nn.Module, tuple[Any, ...]]]:
    """Where each network that the command line names should go, without a suffix, and the network."""
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in networks.items():
        if not wanted or name in wanted:
            torch.manual_seed(0)
            module, inputs = make()
            yield folder / name, module.eval(), inputs


def write(module: nn.Module, inputs: tuple[Any, ...], folder: Path, name: str) -> None:
    """Export to both formats; what a format can't express is said and left out."""
    for suffix, export in ((".pt2", _program), (".onnx", graph)):
        path = folder / f"{name}{suffix}"
        try:
            export(module, inputs, path)
        except Exception as error:
            print(f"{path.name}: torch can't export it: {str(error).splitlines()[0]}")


def _program(module: nn.Module, inputs: tuple[Any, ...], path: Path) -> None:
    torch.export.save(torch.export.export(module, inputs), path)


def graph(module: nn.Module, inputs: tuple[Any, ...], path: Path) -> None:
    torch.onnx.export(module, inputs, path, dynamo=True, external_data=False, verbose=False)


def vision(name: str) -> Make:
    """A network of torchvision on one image."""

    def make() -> tuple[nn.Module, tuple[Any, ...]]:
        import torchvision

        return torchvision.models.get_model(name, weights=None), (torch.randn(1, 3, 224, 224),)

    return make


def bert() -> tuple[nn.Module, tuple[Any, ...]]:
    from transformers import BertConfig, BertModel

    config = BertConfig(num_hidden_layers=4, hidden_size=256, num_attention_heads=4, intermediate_size=1024)
    return First(BertModel(config)), (torch.randint(0, 1000, (1, 64)), torch.ones(1, 64, dtype=torch.int64))


def gpt2() -> tuple[nn.Module, tuple[Any, ...]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=5000, use_cache=False)
    return First(GPT2LMHeadModel(config)), (torch.randint(0, 1000, (1, 64)),)


class First(nn.Module):
    """The first output of a network alone."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *inputs: Any) -> Any:
        return self.inner(*inputs, return_dict=False)[0]


class Tagger(nn.Module):
    """Words in, a tag for each out."""

    def __init__(self, cell: type[nn.RNNBase]) -> None:
        super().__init__()
        self.words = nn.Embedding(2000, 64)
        self.cell = cell(64, 96, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(192, 17)

    def forward(self, words: Any) -> Any:
        return self.tags(self.cell(self.words(words))[0])


class UNet(nn.Module):
    """Two halvings, two doublings, and what was seen on the way down."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([_double(3, 16), _double(16, 32), _double(32, 64)])
        self.ups = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)])
        self.merge = nn.ModuleList([_double(64, 32), _double(32, 16)])
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x: Any) -> Any:
        one = self.down[0](x)
        two = self.down[1](nn.functional.max_pool2d(one, 2))
        deep = self.down[2](nn.functional.max_pool2d(two, 2))
        two = self.merge[0](torch.cat([self.ups[0](deep), two], 1))
        return self.last(self.merge[1](torch.cat([self.ups[1](two), one], 1)))


def _double(inner: int, outer: int) -> nn.Module:
    parts = [nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU()]
    return nn.Sequential(*parts, nn.Conv2d(outer, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU())


def audio() -> nn.Module:
    """Waveform in, classes out."""
    layers: list[nn.Module] = []
    for inner, outer, stride in ((1, 32, 8), (32, 64, 4), (64, 128, 4), (128, 128, 2)):
        layers += [nn.Conv1d(inner, outer, 9, stride, padding=4), nn.BatchNorm1d(outer), nn.GELU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 35))


NETWORKS: dict[str, Make] = {
    **{name: vision(name) for name in ("mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "swin_t")},
    "bert_4": bert,
    "gpt2_4": gpt2,
    "lstm_tagger": lambda: (Tagger(nn.LSTM), (torch.randint(0, 2000, (1, 40)),)),
    "gru_tagger": lambda: (Tagger(nn.GRU), (torch.randint(0, 2000, (1, 40)),)),
    "unet": lambda: (UNet(), (torch.randn(1, 3, 128, 128),)),
    "audio_conv": lambda: (audio(), (torch.randn(1, 1, 16000),)),
}


if __name__ == "__main__":
    main()
