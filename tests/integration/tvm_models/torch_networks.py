"""Small PyTorch modules; imported only where torch is installed."""

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn


class ResidualBlock(nn.Module):
    """Two convolutions with batch norms, and a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + x)


class SmallResNet(nn.Module):
    """A residual network with a dropout, which must do nothing when it is deployed."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.body = nn.Sequential(nn.MaxPool2d(2), ResidualBlock(8), ResidualBlock(8))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, 10))

    def forward(self, x: Any) -> Any:
        return self.head(self.body(self.stem(x)))


class Unsupported(nn.Module):
    """A layer, then an operator that TVM does not import, inside a part of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.tail = Bessel()

    def forward(self, x: Any) -> Any:
        return self.tail(torch.relu(x))


class Bessel(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.special.bessel_j0(x)


class TwoWays(nn.Module):
    """Two inputs, one of token numbers; two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(16, 8)

    def forward(self, tokens: Any, scale: Any) -> Any:
        vectors = self.words(tokens) * scale
        return vectors, vectors.sum(dim=-1)


class ReadsNumber(nn.Module):
    """Adds a number that it reads from a tensor of its own: it has no bounds that torch knows."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("number", torch.tensor(3.0))

    def forward(self, x: Any) -> Any:
        return torch.full((4,), self.number.item()) + x


class AllOutputs(nn.Module):
    """A recurrent layer with its last states among the outputs."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        y, state = self.layer(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


class MixedTypes(nn.Module):
    """Truth values counted, whole numbers divided and multiplied by others."""

    def forward(self, x: Any) -> Any:
        counted = (x > 0).cumsum(dim=-1)
        return counted, torch.floor_divide(x * 0.5, 2) + x, (x != 0).sum(dim=-1)


def resnet() -> Any:
    """A network whose batch norms have seen something."""
    torch.manual_seed(0)
    network = SmallResNet().train()
    with torch.no_grad():
        for _ in range(3):
            network(torch.randn(4, 3, 32, 32) * 2 + 1)
    return network


def encoder() -> Any:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def export(module: Any, inputs: tuple[Any, ...], path: Path, **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of recurrent layers, about how torch keeps their weights
        torch.export.save(torch.export.export(module, inputs, **options), path)
    return str(path)


class ChangesInPlace(nn.Module):
    """Changes tensors that others read: a part of one, one read before, one viewed later."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(2, 4, 3, padding=1)

    def forward(self, x: Any) -> Any:
        first = torch.relu_(self.layer(x))
        canvas = torch.zeros(1, 4, 6, 6)
        canvas[:, 1:3, 2:] = first[:, :2, :4]
        before = canvas * 1
        canvas.add_(1)
        corner = canvas[:, 0]
        canvas.mul_(3)
        return before, corner, canvas.flatten(1)


class OwnConstant(nn.Module):
    """Has a tensor of its own, in a part with a name that graph modules of PyTorch use themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = self.Body()

    class Body(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.adaptive_max_pool2d(x, (2, 3)) + torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x: Any) -> Any:
        return self.graph(x)


class AddsAtPlaces(nn.Module):
    """Adds rows of messages to the nodes that they go to, as networks on graphs do."""

    def forward(self, messages: Any, places: Any) -> Any:
        wide = places.unsqueeze(-1).expand(-1, messages.shape[1])
        return torch.zeros(3, messages.shape[1]).scatter_add_(0, wide, messages)


class Indices(nn.Module):
    """Reads by negative indices, by several tensors of indices, and with a whole axis between them."""

    def forward(self, x: Any, some: Any, others: Any) -> Any:
        stacked = torch.stack([x, x * 2])
        return stacked[-1], x[:, some], x[:, some, others], x[:, :, others, some % 3], x[others % 2, :, some]
