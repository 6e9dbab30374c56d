"""Builds the wheel with CMake: what `pip install .` calls (PEP 517). Needs nothing but CMake.

The build tree is build/wheel; $ANYDML_BUILD_DIR names another, for example one that is built already.
$CMAKE_ARGS and --config-settings=cmake-args=... add arguments, for example -DANYDML_CUDA=OFF.
"""

import base64
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return write_info(pathlib.Path(metadata_directory)).name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = pathlib.Path(os.environ.get("ANYDML_BUILD_DIR") or ROOT / "build" / "wheel").resolve()
    configure(build, (config_settings or {}).get("cmake-args", ""))
    run("cmake", "--build", build, "--parallel", "--target", "anydml_python_package")
    name = f"anydml-{version()}-{tag()}.whl"
    with tempfile.TemporaryDirectory() as folder:
        staging = pathlib.Path(folder)
        run("cmake", "--install", build, "--component", "wheel", "--strip", "--prefix", staging)
        name_libraries_once(staging)
        write_info(staging)
        write_wheel(pathlib.Path(wheel_directory) / name, staging)
    return name


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


def configure(build, more):
    if os.environ.get("ANYDML_BUILD_DIR") and (build / "CMakeCache.txt").exists():
        return
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run("cmake", "-S", ROOT, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DANYDML_BUILD_TESTS=OFF",
        "-DANYDML_BUILD_BENCH=OFF", "-DANYDML_PYTHON=ON", f"-DANYDML_PYTHON_EXECUTABLE={sys.executable}",
        *shlex.split(os.environ.get("CMAKE_ARGS", "")), *shlex.split(more))


def name_libraries_once(staging):
    """Keeps only libx.so.0, the name by which libraries are found: a wheel has no symbolic links, so libx.so.0.1.0
    would be a second copy."""
    for link in list(staging.rglob("*.so.*")):
        if link.is_symlink():
            link.resolve().replace(link)


def version():
    return re.search(r"project\(AnyDML VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{re.sub('[-.]', '_', sysconfig.get_platform())}"


def write_info(where):
    folder = where / f"anydml-{version()}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: anydml\nVersion: {version()}\n"
        "Summary: DirectML's operators on NumPy arrays and DLPack tensors, on CPUs and NVIDIA GPUs\n"
        "License: MIT\nRequires-Python: >=3.9\nRequires-Dist: numpy\n"
        "Description-Content-Type: text/markdown\n\n" + (ROOT / "docs" / "python.md").read_text())
    (folder / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: anydml\nRoot-Is-Purelib: false\nTag: {tag()}\n")
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE")
    return folder


def write_wheel(path, staging):
    """Writes the list of files and their hashes last, as pip recommends."""
    files = sorted(file for file in staging.rglob("*") if file.is_file())
    info = next(staging.glob("*.dist-info")).name
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in files:
            name, data = file.relative_to(staging).as_posix(), file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            entry = zipfile.ZipInfo(name)  # always with the same date: the same files give the same wheel
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD"), record + f"{info}/RECORD,,\n")
