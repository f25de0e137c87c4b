"""More networks as people write them, small ones, to check with what nobody had in mind.

    python benchmarks/further_architectures.py FOLDER [NAME…]

Each is exported three ways: by `torch.export`, and to ONNX by both exporters of PyTorch (`NAME_script.onnx`
is the older one's). Weights are random. Needs torch, torchvision, timm, transformers and onnxscript.
"""

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from real_architectures import First, asked_for, write

Made = tuple[nn.Module, tuple[Any, ...]]


def main() -> None:
    warnings.simplefilter("ignore")
    for path, module, inputs in asked_for(NETWORKS):
        write(module, inputs, path.parent, path.name)
        write_script(module, inputs, path.with_name(f"{path.name}_script.onnx"))


def write_script(module: nn.Module, inputs: tuple[Any, ...], path: Path) -> None:
    """Export by the older exporter, which traces the module."""
    try:
        torch.onnx.export(module, inputs, path, dynamo=False, opset_version=17)
    except Exception as error:
        print(f"{path.name}: torch can't export it: {str(error).splitlines()[0]}")
        path.unlink(missing_ok=True)


def vision(name: str, size: int = 128, **options: Any) -> Callable[[], Made]:
    """A network of torchvision on one small image."""

    def make() -> Made:
        import torchvision

        net = torchvision.models.get_model(name, weights=None, **options)
        return Tensors(net), (torch.randn(1, 3, size, size),)

    return make


def detector() -> Made:
    """A detector with everything after the network: anchors, suppression, boxes."""
    import torchvision

    net = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5
    )
    return net, ([torch.rand(3, 320, 320)],)


def timm_net(name: str, size: int = 128, **options: Any) -> Callable[[], Made]:
    """A network of timm on one small image."""

    def make() -> Made:
        timm: Any = importlib.import_module("timm")
        return timm.create_model(name, pretrained=False, **options), (torch.randn(1, 3, size, size),)

    return make


class Tensors(nn.Module):
    """Networks that give a dictionary give its first value."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        found = self.inner(x)
        return next(iter(found.values())) if isinstance(found, dict) else found


def transformer(
    kind: str, inputs: Callable[[], tuple[Any, ...]], config: str, **sizes: Any
) -> Callable[[], Made]:
    """A network of transformers with a configuration of so few layers that it is quick."""

    def make() -> Made:
        library: Any = importlib.import_module("transformers")
        settings = getattr(library, config)(**sizes)
        return First(getattr(library, kind)(settings)), inputs()

    return make


class Encoder(nn.Module):
    """The encoder of a network that has a decoder too."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner.get_encoder()

    def forward(self, *inputs: Any) -> Any:
        return self.inner(*inputs, return_dict=False)[0]


def t5() -> Made:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
    return First(T5EncoderModel(config)), words()


class Decoder(nn.Module):
    """A step of Whisper's decoder over what its encoder heard."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner.model.decoder
        self.head = inner.proj_out

    def forward(self, tokens: Any, heard: Any) -> Any:
        found = self.inner(input_ids=tokens, encoder_hidden_states=heard, use_cache=False, return_dict=False)[
            0
        ]
        return self.head(found)


def whisper(part: type[nn.Module], inputs: Callable[[], tuple[Any, ...]]) -> Callable[[], Made]:
    def make() -> Made:
        from transformers import WhisperConfig, WhisperForConditionalGeneration

        config = WhisperConfig(
            vocab_size=500, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=100,
            max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None,
        )  # fmt: skip
        return part(WhisperForConditionalGeneration(config)), inputs()

    return make


def words() -> tuple[Any, ...]:
    return (torch.randint(0, 400, (1, 32)),)


def sound() -> tuple[Any, ...]:
    return (torch.randn(1, 8000),)


def image(size: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.randn(1, 3, size, size),)


_TEXT: dict[str, Any] = {
    "vocab_size": 500,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
_PICTURE: dict[str, Any] = {**_TEXT, "image_size": 64, "patch_size": 16}
_PICTURE.pop("vocab_size")

NETWORKS: dict[str, Callable[[], Made]] = {
    "resnext50": vision("resnext50_32x4d"),
    "regnet_y_400mf": vision("regnet_y_400mf"),
    "mnasnet0_5": vision("mnasnet0_5"),
    "shufflenet_x0_5": vision("shufflenet_v2_x0_5"),
    "googlenet": vision("googlenet", init_weights=False, aux_logits=False),
    "deeplabv3_mobilenet": vision("deeplabv3_mobilenet_v3_large", weights_backbone=None),
    "lraspp_mobilenet": vision("lraspp_mobilenet_v3_large", weights_backbone=None),
    "maxvit_small": timm_net("maxvit_rmlp_pico_rw_256", img_size=128),
    "ssdlite": detector,
    "deit_tiny": timm_net("deit_tiny_patch16_224", img_size=128, depth=2),
    "mobilevit": timm_net("mobilevit_xxs"),
    "ghostnet": timm_net("ghostnet_100"),
    "coat_lite": timm_net("coat_lite_tiny"),
    "poolformer": timm_net("poolformer_s12"),
    "repvgg": timm_net("repvgg_a0"),
    "edgenext": timm_net("edgenext_xx_small"),
    "beit": transformer("BeitModel", image(64), "BeitConfig", **_PICTURE),
    "segformer": transformer(
        "SegformerForSemanticSegmentation", image(64), "SegformerConfig", depths=[1, 1, 1, 1]
    ),
    "distilbert": transformer(
        "DistilBertModel", words, "DistilBertConfig",
        vocab_size=500, dim=64, n_layers=2, n_heads=4, hidden_dim=128,
    ),
    "albert": transformer("AlbertModel", words, "AlbertConfig", **_TEXT, embedding_size=32),
    "deberta": transformer("DebertaV2Model", words, "DebertaV2Config", **_TEXT),
    "t5_encoder": t5,
    "opt": transformer(
        "OPTForCausalLM", words, "OPTConfig", vocab_size=500, hidden_size=64, num_hidden_layers=2,
        num_attention_heads=4, ffn_dim=128, word_embed_proj_dim=64, use_cache=False,
    ),
    "llama": transformer(
        "LlamaForCausalLM", words, "LlamaConfig", **_TEXT, num_key_value_heads=2, use_cache=False
    ),
    "wav2vec2": transformer(
        "Wav2Vec2Model", sound, "Wav2Vec2Config", **{**_TEXT, "vocab_size": 32},
        conv_dim=(32, 32, 32), conv_stride=(5, 4, 4), conv_kernel=(10, 8, 4),
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, num_feat_extract_layers=3,
    ),
    "whisper_encoder": whisper(Encoder, lambda: (torch.randn(1, 80, 200),)),
    "whisper_decoder": whisper(Decoder, lambda: (torch.randint(0, 400, (1, 8)), torch.randn(1, 100, 64))),
}  # fmt: skip


if __name__ == "__main__":
    main()
