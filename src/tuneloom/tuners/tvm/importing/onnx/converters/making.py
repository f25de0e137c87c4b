"""Converters as TVM's importer wants them, made of functions."""

from collections.abc import Callable
from typing import Any, Protocol


class Usual(Protocol):
    """What TVM's own converter makes of a node, or of one with other inputs or attributes."""

    def __call__(self, others: Any = None, options: Any = None) -> Any: ...


def own(convert: Callable[[Any, Any, Any], Any]) -> Any:
    """A converter for all versions of an operator; `convert` gets the builder, inputs and attributes."""

    def get_converter(cls: Any, opset: int) -> Any:
        return lambda bb, inputs, attr, params: convert(bb, inputs, attr)

    return type("Converter", (), {"get_converter": classmethod(get_converter)})


def around(converter: Any, convert: Callable[[Any, Any, Any, Usual], Any]) -> Any:
    """The same around TVM's own converter, which `convert` gets too and decides how to use."""

    def get_converter(cls: Any, opset: int) -> Any:
        original = converter.get_converter(opset)

        def converted(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
            def usual(others: Any = None, options: Any = None) -> Any:
                given = inputs if others is None else others
                return original(bb, given, attr if options is None else options, params)

            return convert(bb, inputs, attr, usual)

        return converted

    return type("Converter", (), {"get_converter": classmethod(get_converter)})
