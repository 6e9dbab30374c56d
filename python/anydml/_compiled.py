"""Compiled operators and how they run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
import numpy.typing as npt

from . import _anydml
from ._arrays import (Layout, Operand, device_operand, host_array, host_operand, is_four_bit, packed,
                      packed_bytes)
from ._tensor import DEFAULT_STREAM, FourBit, Tensor, dtype_of, name_of, number_of

if TYPE_CHECKING:
    from ._device import Device

Places = tuple[Optional[Layout], ...]  # of outputs; None: packed, with the sizes that the operator infers
CompileFor = Callable[[Places], _anydml.CompiledOperator]


class CompiledOperator:
    """An operator that :meth:`Device.compile` has prepared for arrays of certain shapes and types.

    It is called with the inputs, in the order of the function's. Arrays with other strides than
    those it was compiled for are copied; another shape or type is a ValueError. Threads may share it.

    ``out`` names memory for the results, ``stream`` a CUDA stream to run in: then the call returns before
    the operator is done.
    """

    def __init__(self, name: str, device: Device, arguments: list[str],
                 layouts: list[Optional[Layout]], compile_for: CompileFor, output_count: int):
        self.name, self.device = name, device
        self._arguments, self._layouts = arguments, layouts  # one per bound tensor; None: absent
        self._compile_for, self._output_count = compile_for, output_count
        self._kept: Optional[tuple[_anydml.Device, _anydml.CompiledOperator]] = None
        self._quick: Optional[_anydml.Call] = None

    def keep(self) -> CompiledOperator:
        """Compiles for packed outputs; the result lives as long as this object."""
        self._kept = self.device._native, self._compile_for((None,) * self._output_count)
        self._quick = self.quick()
        return self

    def quick(self) -> Optional[_anydml.Call]:
        """The caller for arrays that need no conversion; None if there is none."""
        native = self._native
        if any(layout and is_four_bit(layout[0]) for layout in (*self._layouts, *native.outputs)):
            return None
        inputs, outputs = ([None if layout is None else (layout, tuple(layout[1]), dtype_of(layout[0]))
                            for layout in layouts] for layouts in (self._layouts, native.outputs))
        gpu = -1 if self.device._on_host else self.device._native.dlpack_device[1]
        return _anydml.make_caller(native, inputs, outputs, gpu, partial(Tensor, self.device._native))

    @property
    def implementation(self) -> str:
        """The one that was chosen, for example "cpu.maxima"."""
        return self._native.implementation

    @property
    def explanation(self) -> str:
        """The implementations that were considered, each with "yes" or why not."""
        return self._native.explanation

    @property
    def _native(self) -> _anydml.CompiledOperator:
        if self._kept and self._kept[0] is not self.device._native:
            self.keep()  # the device was removed and opened again
        return self._kept[1] if self._kept else self._compile_for((None,) * self._output_count)

    def __call__(self, *inputs: Any, out: Any = None, stream: Any = None) -> Any:
        number = None if stream is None else self.device._stream(stream, self.name)
        if self._quick is not None:
            results = self._quick(inputs, out, number)
            if results is not NotImplemented:
                return results
        given = iter(inputs)
        wanted = sum(layout is not None for layout in self._layouts)
        if len(inputs) != wanted:
            raise TypeError(f"{self.name} was compiled for {wanted} inputs but got {len(inputs)}")
        operands = []
        for name, layout in zip(self._arguments, self._layouts):
            operands.append(None if layout is None else self._fit(next(given), name, layout, number))
        return self.run(operands, out, number)

    def _fit(self, value: Any, name: str, layout: Layout, stream: Optional[int]) -> Operand:
        what = f"{self.name}: {name}"
        operand = self.device._input(value, what, stream)
        if operand.layout == layout:
            return operand
        number, sizes, strides = layout
        if operand.layout[:2] != (number, sizes):
            raise ValueError(f"{what} is {name_of(operand.layout[0])} {operand.layout[1]} but was compiled "
                             f"as {name_of(number)} {sizes}")
        if not self.device._on_host:
            raise ValueError(f"{what} has strides {operand.layout[2]} but was compiled with {strides}, in "
                             f"elements; on a GPU they must be the same")
        item = dtype_of(number).itemsize
        room = np.empty(Operand(layout, 0, None).span // item, dtype_of(number))
        view = np.lib.stride_tricks.as_strided(room, sizes, [stride * item for stride in strides])
        array = host_array(value, what).reshape(sizes)
        view[...] = array
        if view.tobytes() != array.astype(view.dtype, copy=False).tobytes():
            raise ValueError(f"{what} was compiled with strides {strides}, by which elements share memory; those "
                             "of the array that is given differ")
        return Operand(layout, room.ctypes.data, room)

    # ---- Running ----

    def run(self, inputs: list[Optional[Operand]], out: Any, stream: Optional[int]) -> Any:
        outs = self._outs(out)
        if self.device._on_host:
            results = self._run_on_host(inputs, outs)
        else:
            results = self._run_on_device(inputs, outs, stream)
        return results[0] if len(results) == 1 else tuple(results)

    def _outs(self, out: Any) -> list[Any]:
        count = self._output_count
        if out is None:
            return [None] * count
        if any(isinstance(each, FourBit) for each in (out if isinstance(out, (tuple, list)) else [out])):
            raise TypeError(f"{self.name}: out is a FourBit; results of four bits are always new")
        if count == 1 and not isinstance(out, (tuple, list)):
            return [out]
        if not isinstance(out, (tuple, list)) or len(out) != count:
            raise ValueError(f"{self.name}: out must be a sequence of {count}, one per output")
        return list(out)

    def _run_on_host(self, inputs: list[Optional[Operand]], outs: list[Any]) -> list[Any]:
        targets = [None if out is None else self._target(out) for out in outs]
        direct = self._direct(targets)
        native = self._placed(targets, direct)
        allowed = [operand if operand and _may_write(native, inputs, number, operand) else None
                   for number, operand in enumerate(direct)]
        if allowed != direct:
            direct = allowed
            native = self._placed(targets, direct)
        results: list[Any] = []  # where the operator writes
        for layout, target, operand in zip(native.outputs, targets, direct):
            if layout is None or operand:
                results.append(target)
            elif is_four_bit(layout[0]):
                room = np.zeros(packed_bytes(layout[0], math.prod(layout[1])), np.uint8)
                results.append(FourBit.over(room, tuple(layout[1]), layout[0]))
            else:
                results.append(np.empty(layout[1], dtype_of(layout[0])))
        places = [_address(None if result is None else
                           self.device._input(result, self.name) if isinstance(result, FourBit) else
                           host_operand(result, self.name)) for result in results]
        native.run([_address(operand) for operand in inputs], places, 0, True)
        for target, operand, result in zip(targets, direct, results):
            if target is not None and operand is None and result is not None:
                target[...] = result.reshape(target.shape)
        return [result if out is None else out for out, result in zip(outs, results)]

    def _target(self, out: Any) -> npt.NDArray[Any]:
        target = host_array(out, f"{self.name}: out")
        if not target.flags.writeable:
            raise ValueError(f"{self.name}: out is read-only")
        return target

    def _direct(self, targets: Sequence[Optional[npt.NDArray[Any]]]) -> list[Optional[Operand]]:
        """The outputs that the operator can write in place, as far as their layout shows; results are copied to the
        others."""
        direct: list[Optional[Operand]] = []
        for target in targets:
            operand = None if target is None else host_operand(target, f"{self.name}: out")
            if operand and any(other and operand.overlaps(other) for other in direct):
                operand = None
            direct.append(operand)
        return direct

    def _placed(self, targets: Sequence[Optional[npt.NDArray[Any]]],
                direct: Sequence[Optional[Operand]]) -> _anydml.CompiledOperator:
        """The operator compiled for the given outputs: with their layout, or packed."""
        return self._for([operand.layout if operand else
                          None if target is None else packed(number_of(target.dtype, "out"), target.shape or (1,))
                          for target, operand in zip(targets, direct)])

    def _for(self, places: Sequence[Optional[Layout]]) -> _anydml.CompiledOperator:
        return self._compile_for(tuple(places)) if any(places) else self._native

    def _run_on_device(self, inputs: list[Optional[Operand]], outs: list[Any], wanted: Optional[int]) -> list[Any]:
        device, stream = self.device._native, wanted or DEFAULT_STREAM
        given = [None if out is None else device_operand(device, out, f"{self.name}: out", stream) for out in outs]
        native = self._for([operand.layout if operand else None for operand in given])
        for number, operand in enumerate(given):
            others = [other for other in given[:number] if other]
            if operand and (operand.address % 16 != 0 or any(operand.overlaps(other) for other in others)
                            or not _may_write(native, inputs, number, operand)):
                raise ValueError(f"{self.name}: out must begin at a multiple of 16 bytes and share no memory "
                                 f"with other tensors")
        results: list[Any] = []
        for layout, out, operand in zip(native.outputs, outs, given):
            if layout is None or out is not None:
                results.append(out)
                continue
            shape = tuple(layout[1])
            count = packed_bytes(layout[0], math.prod(shape))
            if is_four_bit(layout[0]):
                room = Tensor(device, device.allocate(count, stream, True), (count,), np.dtype(np.uint8))
                results.append(FourBit.over(room, shape, layout[0]))
            else:
                results.append(Tensor(device, device.allocate(count, stream, False), shape, dtype_of(layout[0])))
        places = [_address(operand or (self.device._input(result, self.name, stream) if result is not None else None))
                  for operand, result in zip(given, results)]
        native.run([_address(operand) for operand in inputs], places, stream, wanted is None)
        return results

    def __reduce__(self) -> Any:
        raise TypeError("a CompiledOperator cannot be pickled or copied; compile it where it is needed")

    def __repr__(self) -> str:
        return f"<{self.name} for {self.device.id}: {self.implementation}>"


def _address(operand: Optional[Operand]) -> int:
    return operand.address if operand else 0


def _may_write(native: _anydml.CompiledOperator, inputs: Sequence[Optional[Operand]], number: int,
               output: Operand) -> bool:
    """Whether the output shares no memory with inputs, except where the operator runs in place."""
    return all(not other or not output.overlaps(other)
               or (output.same_region(other) and native.may_run_in_place(i, number))
               for i, other in enumerate(inputs))
