"""A plugin (-p doctest_names): examples in docstrings know numpy and the package."""

import numpy as np
import pytest

import anydml as dml


@pytest.fixture(autouse=True)
def _names(doctest_namespace):
    doctest_namespace["np"] = np
    doctest_namespace["dml"] = dml
