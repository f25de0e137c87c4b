"""The operator of PyTorch's fast path is replaced by ones that compute the same and can be compiled."""

import warnings
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
from tuneloom.pytorch import fast_paths

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.randn(2, 6, 16)
CAUSAL = torch.nn.Transformer.generate_square_subsequent_mask(6)
PADDING = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])


def captured(model: Any, *arguments: Any, **named: Any) -> tuple[Any, set[Any]]:
    """What a model answers with its fast paths replaced, and which were."""
    replaced: set[Any] = set()

    def backend(module: Any, _: Any) -> Any:
        before = {node.target for node in module.graph.nodes}
        fast_paths.without_fast_paths(module)
        replaced.update(before - {node.target for node in module.graph.nodes})
        return module

    torch._dynamo.reset()
    with torch.no_grad():
        return torch.compile(model, backend=backend)(*arguments, **named), replaced


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(
    "masks", [{}, {"src_mask": CAUSAL}, {"src_key_padding_mask": PADDING}], ids=["open", "causal", "padded"]
)
def test_a_layer_of_an_encoder_answers_as_before(
    norm_first: bool, activation: str, masks: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        16, 4, 32, activation=activation, batch_first=True, norm_first=norm_first
    ).eval()
    with torch.no_grad():
        expected = layer(X, **masks)
    found, replaced = captured(layer, X, **masks)
    assert replaced == {torch._transformer_encoder_layer_fwd}
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
