"""The functions are exactly the operators, typed and documented."""

import importlib.util
import inspect
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

import anydml as dml
from anydml import _anydml, _operators

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(dml.__file__).parent


def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "python" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_function_per_operator():
    functions = {name for name in _operators.__all__ if name != "scatter"}
    assert functions == {name.lower() for name in _anydml.operators()}
    assert set(_operators.__all__) <= set(dml.__all__)


def test_functions_are_typed_and_documented():
    for name in _operators.__all__:
        function = getattr(dml, name)
        signature = inspect.signature(function)
        assert all(p.annotation is not p.empty for p in signature.parameters.values())
        assert signature.return_annotation is not signature.empty
        for parameter in set(signature.parameters) - {"out", "device"}:
            assert f"\n    {parameter}" in function.__doc__, f"{name} does not document {parameter}"


def test_signatures():
    def arguments(function):
        return str(inspect.signature(function)).split(") ->")[0]
    assert [p.name for p in inspect.signature(dml.top_k1).parameters.values()] == [
        "input", "axis", "k", "direction", "index_dtype", "out", "device", "stream"]
    assert "input_dimension_count: 'SupportsIndex | None' = None" in arguments(dml.scatter_nd)


def test_the_generator_takes_every_operator_of_the_schema(tmp_path):
    generate = generator()
    schema = json.loads((ROOT / "schema" / "operators.json").read_text())
    names = {operator["name"] for operator in schema["operators"] if "aliasOf" not in operator}
    generate.write(*generate.functions(names), tmp_path)
    for file in ("_operators.py", "_operators.pyi"):
        code = compile((tmp_path / file).read_text(), file, "exec")
        assert "gemm" in code.co_names


def test_version():
    assert dml.__version__ == _anydml.version()
    assert (PACKAGE / "py.typed").exists()


def test_types(tmp_path):
    if shutil.which("mypy") is None:
        pytest.skip("mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text("import numpy as np\nimport anydml as dml\n"
                       "x = np.zeros(3, np.float32)\n"
                       "values, indices = dml.top_k1(x, axis=0, k=1, direction='increasing')\n"
                       "reveal_type(values)\n"
                       "dml.top_k1(x, axis=0, k=1, direction='sideways')\n"
                       "dml.top_k1(x, 0)\n")
    run = subprocess.run([shutil.which("mypy"), "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)],
                         env={"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    lines = run.stdout.splitlines()
    assert "ndarray" in lines[0] and "program.py:5" in lines[0], run.stdout
    assert [line.split(":")[1] for line in lines if "error:" in line] == ["6", "7"], run.stdout


def test_types_of_the_package_itself(tmp_path):
    if shutil.which("mypy") is None:
        pytest.skip("mypy is not installed")
    run = subprocess.run([shutil.which("mypy"), "--strict", "--cache-dir", str(tmp_path), "-p", "anydml"],
                         cwd=PACKAGE.parent, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_importing_starts_nothing():
    code = "import threading, os, anydml; print(len(os.listdir('/proc/self/task')))"
    alone = "import threading, os, numpy; print(len(os.listdir('/proc/self/task')))"
    counts = [subprocess.run([sys.executable, "-c", c], capture_output=True, text=True).stdout for c in (code, alone)]
    assert counts[0] == counts[1]
