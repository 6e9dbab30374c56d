"""The argument handling of every function."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _anydml
from ._arrays import Layout, Operand, device_name, spec_operand
from ._attributes import to_text
from ._compiled import CompiledOperator, Places
from ._device import Compiling, Device
from ._foreign import dimensions_of
from ._tensor import TensorSpec, requested_number, stream_number

atexit.register(_anydml.forget_functions)

Inputs = Sequence[tuple[str, str, Any]]  # field, argument, array or None
Attributes = Sequence[tuple[str, str, str, Any]]  # field, kind, argument, value
Outputs = Sequence[tuple[str, Any, Any]]  # field, how many, dtype


def call(name: str, inputs: Inputs, attributes: Attributes, outputs: Outputs, out: Any,
         device: Union[Device, str, Compiling, None], stream: Any) -> Any:
    given = device
    results = _anydml.call_function(name, inputs, attributes, outputs, out, given,
                                    None if stream is None else stream_number(stream))
    if results is not NotImplemented:
        return results
    compiling = isinstance(device, Compiling)
    if isinstance(device, Compiling):
        device = device.device
    elif not isinstance(device, Device):
        device = Device(device_name([value for _, _, value in inputs]) if device is None else device)
    number = None if compiling else device._stream(stream, name)
    operands = [None if value is None else _operand(device, compiling, value, f"{name}: {argument}", number)
                for _, argument, value in inputs]
    operator = _prepare(name, device, inputs, operands, attributes, outputs)
    if compiling:
        for argument, value in (("out", out), ("stream", stream)):
            if value is not None:
                raise ValueError(f"{name}: {argument} is given when the operator is run, not when it is compiled")
        return operator.keep()
    results = _as_scalar(operator.run(operands, out, number), inputs, out)
    if out is None:
        _anydml.remember(name, inputs, attributes, outputs, given, operator.quick)
    return results


def _operand(device: Device, compiling: bool, value: Any, what: str, stream: Optional[int]) -> Operand:
    if compiling and isinstance(value, TensorSpec):
        return spec_operand(value, what)
    return device._input(value, what, stream)


def _prepare(name: str, device: Device, inputs: Inputs, operands: list[Optional[Operand]],
             attributes: Attributes, outputs: Outputs) -> CompiledOperator:
    layouts = [operand.layout if operand else None for operand in operands]
    ndim = len(layouts[0][1]) if layouts and layouts[0] else 0
    texts = [(field, to_text(name, kind, argument, value, ndim))
             for field, kind, argument, value in attributes if value is not None]
    wanted: list[tuple[str, Optional[Layout]]] = []  # one per output; sizes missing: inferred; None: omitted
    for field, count, dtype in outputs:
        number = 0 if dtype is None else requested_number(dtype, f"{name}: {field}")
        inferred: Layout = (number, (), ())
        wanted += [(field, inferred)] * int(count) or [(field, None)]
    tensors = [(field, layout) for (field, _, _), layout in zip(inputs, layouts) if layout]

    def compile_for(places: Places) -> _anydml.CompiledOperator:
        requests: dict[str, list[Layout]] = {field: [] for field, _, _ in outputs}
        for (field, layout), place in zip(wanted, places):
            if layout is not None:
                requests[field].append(place or layout)
            elif place is not None:
                raise ValueError(f"{name}: out has a place for {field}, which is not wanted")
        key = (name, tuple(tensors), repr(texts), repr(requests))
        return device._compile(key, (name, tensors, texts, list(requests.items())))

    arguments = [argument for _, argument, _ in inputs]
    return CompiledOperator(name, device, arguments, layouts, compile_for, len(wanted))


def _as_scalar(results: Any, inputs: Inputs, out: Any) -> Any:
    """Where the first input has no dimensions, results of one element have none either."""
    if out is not None or not inputs or not isinstance(results, np.ndarray):
        return results
    if dimensions_of(inputs[0][2], inputs[0][1]) != 0:
        return results
    return results.reshape(()) if results.shape == (1,) else results
