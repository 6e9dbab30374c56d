"""Devices, and the operators that are compiled for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import _anydml
from ._arrays import (Layout, Operand, Region, device_input, device_operand, host_array, host_input, host_operand,
                      spec_operand)
from ._tensor import Tensor, TensorSpec, dtype_of

_KEPT = 256  # compiled operators per device, for calls of functions


def adapters() -> list[tuple[str, str]]:
    """Names and descriptions of what :class:`Device` takes, best first.

    >>> dict(dml.adapters())["cpu"]  # doctest: +ELLIPSIS
    '...'
    """
    return _anydml.adapters()


class Device:
    """An adapter: ``Device("cpu")`` or ``Device("cuda:0")``. There is one object per name and process.

    Threads may share it; it executes one operator after the other.
    """

    _devices: dict[str, Device] = {}
    _lock = threading.Lock()
    _forked = False

    _native: _anydml.Device
    _compiled: dict[Any, _anydml.CompiledOperator]

    def __new__(cls, name: str = "cpu") -> Device:
        cls._check_process()
        with cls._lock:
            device = cls._devices.get(name)
            if device is None or device._native.removed:
                native = _anydml.Device(name)
                device = cls._devices.get(native.id)  # other spellings of the same one
                if device is None or device._native.removed:
                    device = super().__new__(cls)
                    device._native, device._compiled = native, {}
                    cls._devices[native.id] = device
                cls._devices[name] = device
            return device

    @classmethod
    def _check_process(cls) -> None:
        if cls._forked:
            raise RuntimeError("this process was forked from one that had used anydml, whose threads it does "
                               "not have; start it with the 'spawn' or 'forkserver' method of multiprocessing")

    @property
    def id(self) -> str:
        return self._native.id

    @property
    def description(self) -> str:
        return self._native.description

    @property
    def feature_level(self) -> str:
        """DirectML's; ``ANYDML_FEATURE_LEVEL`` in the environment holds new devices to a lower one."""
        return self._native.feature_level

    def compile(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> CompiledOperator:
        """Compiles an operator for arrays like these, to be run on many.

        ``function`` is one of this module's, followed by its arguments; in the place of arrays
        there may be a :class:`TensorSpec`.

        >>> copy = dml.Device("cpu").compile(dml.element_wise_identity, dml.TensorSpec((2,), np.int32))
        >>> copy(np.array([1, 2], dtype=np.int32))
        array([1, 2], dtype=int32)
        """
        compiled = function(*args, device=Compiling(self), **kwargs)
        assert isinstance(compiled, CompiledOperator)
        return compiled

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return Device, (self.id,)

    def __repr__(self) -> str:
        return f"Device({self.id!r})"

    # ---- For the functions ----

    @property
    def _on_host(self) -> bool:
        return self.id == "cpu"

    def _input(self, value: Any, what: str) -> Operand:
        self._check_process()
        if isinstance(value, TensorSpec):
            return spec_operand(value, what)
        return host_input(value, what) if self._on_host else device_input(self._native, value, what)

    def _compile(self, key: tuple[Any, ...], request: tuple[Any, ...]) -> _anydml.CompiledOperator:
        """From the cache; operators that two threads want at once may be compiled twice."""
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._native.compile(*request)
            with self._lock:
                self._compiled[key] = compiled
                while len(self._compiled) > _KEPT:
                    del self._compiled[next(iter(self._compiled))]
        return compiled


class Compiling:
    """In the place of a device: the operator is wanted, not its result."""

    def __init__(self, device: Device):
        self.device = device


Places = tuple[Optional[Layout], ...]
# Compiles for outputs that lie like this.
Recompile = Callable[[Places], _anydml.CompiledOperator]


class CompiledOperator:
    """An operator that :meth:`Device.compile` has prepared for arrays of certain shapes and types.

    It is called with the inputs, in the order of the function's. Arrays with other strides than
    those it was compiled for are copied; another shape or type is a ValueError. Threads may share it.
    """

    def __init__(self, name: str, device: Device, arguments: list[str],
                 layouts: list[Optional[Layout]], recompile: Recompile, places: Places):
        self.name, self.device = name, device
        self._arguments, self._layouts = arguments, layouts  # one per bound tensor; None: absent
        self._recompile, self._places = recompile, places
        self._native = recompile(places)

    @property
    def implementation(self) -> str:
        """The one that was chosen, for example "cpu.bests"."""
        return self._native.implementation

    @property
    def explanation(self) -> str:
        """The implementations that were considered, each with "yes" or why not."""
        return self._native.explanation

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        given = iter(inputs)
        wanted = sum(layout is not None for layout in self._layouts)
        if len(inputs) != wanted:
            raise TypeError(f"{self.name} was compiled for {wanted} inputs but got {len(inputs)}")
        operands = []
        for name, layout in zip(self._arguments, self._layouts):
            operands.append(None if layout is None else self._fit(next(given), name, layout))
        return self.run(operands, out)

    def _fit(self, value: Any, name: str, layout: Layout) -> Operand:
        what = f"{self.name}: {name}"
        operand = self.device._input(value, what)
        if operand.layout == layout:
            return operand
        number, sizes, strides = layout
        if operand.layout[:2] != (number, sizes):
            raise ValueError(f"{what} is {dtype_of(operand.layout[0])} {operand.layout[1]} but was compiled "
                             f"as {dtype_of(number)} {sizes}")
        if not self.device._on_host:
            raise ValueError(f"{what} has strides {operand.layout[2]} but was compiled with {strides}, in "
                             f"elements; on a GPU they must be the same")
        item = dtype_of(number).itemsize
        room = np.empty(Operand(layout, 0, None).span // item, dtype_of(number))
        view = np.lib.stride_tricks.as_strided(room, sizes, [stride * item for stride in strides])
        view[...] = host_array(value, what).reshape(sizes)
        return Operand(layout, room.ctypes.data, room)

    # ---- Running ----

    def run(self, inputs: list[Optional[Operand]], out: Any) -> Any:
        outs = self._outs(out)
        if self.device._on_host:
            results = self._run_on_host(inputs, outs)
        else:
            results = self._run_on_device(inputs, outs)
        return results[0] if len(results) == 1 else tuple(results)

    def _outs(self, out: Any) -> list[Any]:
        count = len(self._native.outputs)
        if out is None:
            return [None] * count
        if count == 1 and not isinstance(out, (tuple, list)):
            return [out]
        if not isinstance(out, (tuple, list)) or len(out) != count:
            raise ValueError(f"{self.name}: out must be a sequence of {count}, one per output")
        return list(out)

    def _run_on_host(self, inputs: list[Optional[Operand]], outs: list[Any]) -> list[Any]:
        targets: list[Optional[npt.NDArray[Any]]] = []
        direct: list[Optional[Operand]] = []  # where the operator can write itself
        for number, out in enumerate(outs):
            target = None if out is None else host_array(out, f"{self.name}: out")
            targets.append(target)
            if target is None:
                direct.append(None)
                continue
            if not target.flags.writeable:
                raise ValueError(f"{self.name}: out is read-only")
            operand = host_operand(target, f"{self.name}: out")
            if operand and any(other and operand.overlaps(other) for other in direct):
                operand = None
            direct.append(operand)
        native = self._placed(direct)
        for number, operand in enumerate(direct):
            if operand and not _may_write(native, inputs, number, operand):
                direct[number] = None
        native = self._placed(direct)

        results: list[Any] = []
        for layout, target, operand in zip(native.outputs, targets, direct):
            if layout is None or operand:
                results.append(target)
                continue
            array: npt.NDArray[Any] = np.empty(layout[1], dtype_of(layout[0]))
            _check_out(self.name, target, array)
            results.append(array)
        regions = [_region(host_operand(result, self.name) if result is not None else None)
                   for result in results]
        native.run([_region(operand) for operand in inputs], regions)
        for number, (target, operand) in enumerate(zip(targets, direct)):
            if target is not None and not operand:
                target[...] = results[number].reshape(target.shape)
                results[number] = target
            if outs[number] is not None:
                results[number] = outs[number]  # as it was given
        return results

    def _placed(self, direct: Sequence[Optional[Operand]]) -> _anydml.CompiledOperator:
        """Compiled for outputs that lie as they do; those that are not given, as when it was compiled."""
        places = tuple(operand.layout if operand else place for operand, place in zip(direct, self._places))
        return self._native if places == self._places else self._recompile(places)

    def _run_on_device(self, inputs: list[Optional[Operand]], outs: list[Any]) -> list[Any]:
        device = self.device._native
        given = [None if out is None else device_operand(device, out, f"{self.name}: out") for out in outs]
        native = self._placed(given)
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
            dtype, shape = dtype_of(layout[0]), tuple(layout[1])
            bytes = int(np.prod(shape)) * dtype.itemsize
            results.append(Tensor(device, device.allocate(bytes), shape, dtype))
        regions = [_region(operand or (device_operand(device, result, self.name) if result is not None else None))
                   for operand, result in zip(given, results)]
        native.run([_region(operand) for operand in inputs], regions)
        return results

    def __repr__(self) -> str:
        return f"<{self.name} for {self.device.id}: {self.implementation}>"


def _region(operand: Optional[Operand]) -> Region:
    return operand.region if operand else (0, 0)


def _may_write(native: _anydml.CompiledOperator, inputs: Sequence[Optional[Operand]], number: int,
               output: Operand) -> bool:
    """Whether the output shares no memory with inputs but where the operator runs in place."""
    return all(not other or not output.overlaps(other)
               or (output.same_region(other) and native.may_run_in_place(i, number))
               for i, other in enumerate(inputs))


def _check_out(name: str, target: Optional[npt.NDArray[Any]], result: npt.NDArray[Any]) -> None:
    if target is None or (target.dtype.newbyteorder("=") == result.dtype and (target.shape or (1,)) == result.shape):
        return
    raise ValueError(f"{name}: out is {target.dtype} {target.shape} but must be {result.dtype} {result.shape}")


def _after_fork() -> None:
    Device._forked = Device._forked or bool(Device._devices)
    Device._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)

