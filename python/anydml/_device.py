"""Devices."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Optional

from . import _anydml
from ._arrays import Operand, device_input, four_bit_operand, host_input
from ._compiled import CompiledOperator
from ._tensor import DEFAULT_STREAM, FourBit, TensorSpec, stream_number

_KEPT = 256  # compiled operators per device, for calls of functions


def adapters() -> list[tuple[str, str]]:
    """Names and descriptions of what :class:`Device` takes, best first.

    >>> dict(dml.adapters())["cpu"]  # doctest: +ELLIPSIS
    '...'
    """
    return _anydml.adapters()


class Device:
    """An adapter: ``Device("cpu")`` or ``Device("cuda:0")``. There is one object per name and process.

    Threads may share it. Should it be removed, as DirectML calls it,
    what is run next opens it anew.
    """

    _devices: dict[str, Device] = {}
    _lock = threading.Lock()

    _opened: _anydml.Device
    _compiled: dict[Any, _anydml.CompiledOperator]
    id: str

    def __new__(cls, name: str = "cpu") -> Device:
        if not isinstance(name, str):
            raise TypeError(f"device is {name!r}; it must be the name of an adapter, such as 'cpu'")
        _anydml.check_process()
        # A with statement needs memory to release the lock, and keeps it locked if there is none.
        cls._lock.acquire()
        try:
            device = cls._devices.get(name)
            if device is None:
                opened = _anydml.open_device(name)
                device = cls._devices.get(opened.id)  # alternative names of a device
                if device is None:
                    device = super().__new__(cls)
                    device._opened, device._compiled, device.id = opened, {}, opened.id
                    cls._devices[device.id] = device
                cls._devices[name] = device
            return device
        finally:
            cls._lock.release()

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
    def _native(self) -> _anydml.Device:
        if self._opened.removed:
            self._lock.acquire()
            try:
                if self._opened.removed:
                    self._opened, self._compiled = _anydml.open_device(self.id), {}
            finally:
                self._lock.release()
        return self._opened

    @property
    def _on_host(self) -> bool:
        return self._opened.runs_on_host

    def _input(self, value: Any, what: str, stream: Optional[int] = None) -> Operand:
        """`stream`: where the operator runs, on a GPU; None: the default stream."""
        _anydml.check_process()
        if isinstance(value, TensorSpec):
            raise TypeError(f"{what} is a TensorSpec, which only Device.compile takes; it must be an array")
        if isinstance(value, FourBit):
            return four_bit_operand(value, self._input(value.packed, what, stream))
        if self._on_host:
            return host_input(value, what)
        return device_input(self._native, value, what, stream or DEFAULT_STREAM)

    def _stream(self, stream: Any, what: str) -> Optional[int]:
        if stream is None:
            return None
        if self._on_host:
            raise ValueError(f"{what}: stream is given but the operator runs on cpu, which has none")
        return stream_number(stream)

    def _compile(self, key: tuple[Any, ...], request: tuple[Any, ...]) -> _anydml.CompiledOperator:
        """From the cache; if two threads need an operator at once, it may be compiled twice."""
        native = self._native
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = native.compile(*request)
            self._lock.acquire()
            try:
                self._compiled[key] = compiled
                while len(self._compiled) > _KEPT:
                    del self._compiled[next(iter(self._compiled))]
            finally:
                self._lock.release()
        return compiled


class Compiling:
    """In the place of a device: the operator is wanted, not its result."""

    def __init__(self, device: Device):
        self.device = device


def _after_fork() -> None:
    Device._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)

