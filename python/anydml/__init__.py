"""DirectML's operators on NumPy arrays and, through DLPack, on everybody else's.

>>> import anydml as dml
>>> x = np.array([3, 1, 2], dtype=np.float32)
>>> values, indices = dml.top_k1(x, axis=-1, k=2, direction="decreasing")
>>> values, indices
(array([3., 2.], dtype=float32), array([0, 2], dtype=uint32))

An operator that is used often is compiled once:

>>> device = dml.Device("cpu")
>>> top = device.compile(dml.top_k1, dml.TensorSpec((3,), np.float32), axis=0, k=1, direction="increasing")
>>> top(x)
(array([1.], dtype=float32), array([1], dtype=uint32))
"""

from . import onnx
from ._anydml import version as _version
from ._attributes import Activation
from ._compiled import CompiledOperator
from ._device import Device, adapters
from ._operators import *  # noqa: F403
from ._operators import __all__ as _functions
from ._tensor import FourBit, Tensor, TensorSpec

__version__ = _version()
__all__ = ["Activation", "CompiledOperator", "Device", "FourBit", "Tensor", "TensorSpec", "adapters", "onnx", *_functions]
