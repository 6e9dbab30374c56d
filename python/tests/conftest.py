"""What the tests share.

Examples of hypothesis are the same in every run; HYPOTHESIS_PROFILE=random looks for new ones."""

import os

import pytest

from anydml import _anydml

try:
    from hypothesis import settings
except ImportError:  # the tests that need it are skipped
    pass
else:
    settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60, print_blob=True)
    settings.register_profile("random", deadline=None, max_examples=2000, print_blob=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture
def forget_functions():
    """For simulated GPUs: functions cache compiled operators by the device's name, which a real GPU shares."""
    _anydml.forget_functions()
    yield
    _anydml.forget_functions()
