"""Operators and models on Dask's arrays: larger than memory, on one machine or many.

Everything here is lazy: arrays come back, and a scheduler computes their chunks, each with the operators of
:mod:`anydml`. What chunks have to tell each other is merged in a tree; no chunk goes to the client.

>>> import anydml.dask, dask.array as da
>>> x = da.from_array(np.array([3, 1, 4, 1, 5, 9, 2, 6], dtype=np.float32), chunks=3)
>>> values, indices = anydml.dask.top_k1(x, axis=0, k=2, direction="decreasing")
>>> values.compute(), indices.compute()
(array([9., 6.], dtype=float32), array([5, 7], dtype=uint32))

``docs/scale.md`` says what it costs, and which results are the same bytes as on one machine.
"""

from ._model import map_model
from ._reduce import argmax, argmin, reduce
from ._scatter import scatter_nd
from ._softmax import hardmax, log_softmax, softmax
from ._top_k import top_k1

__all__ = ["argmax", "argmin", "hardmax", "log_softmax", "map_model", "reduce", "scatter_nd", "softmax", "top_k1"]
