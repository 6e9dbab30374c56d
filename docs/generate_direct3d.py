#!/usr/bin/env python3
"""generate_direct3d.py [--check]: writes docs/direct3d.md, the interfaces and methods of Direct3D 12, DXCore, DXGI and
DirectML that there are and what they do, from the classes in src/ that implement them; with --check only tells whether it
is current."""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "direct3d.md"
# (title, folder, [(header, class, what it is)]); classes that one is derived from count as its own.
AREAS = [
    ("DirectML", "dml", [
        ("device", "Device", "the device"), ("operator", "Operator", "an operator"),
        ("compiled_operator", "CompiledOperator", "a compiled operator or graph"),
        ("operator_initializer", "OperatorInitializer", "what initialises operators"),
        ("binding_table", "BindingTable", "a binding table"), ("command_recorder", "CommandRecorder", "the recorder"),
        ("debug_device", "DebugDevice", "of a device that was created with the debug flag")]),
    ("Direct3D 12", "d3d12", [
        ("device", "Device", "the device"), ("command_queue", "CommandQueue", "a queue"),
        ("command_allocator", "CommandAllocator", "an allocator"), ("command_list", "CommandList", "a command list"),
        ("fence", "Fence", "a fence"), ("heap", "Heap", "a heap"), ("resource", "Resource", "a buffer"),
        ("descriptor_heap", "DescriptorHeap", "a descriptor heap"), ("query_heap", "QueryHeap", "timestamps"),
        ("info_queue", "InfoQueue", "the device's messages; asked of the device"),
        ("debug", "Debug", "the debug layer"),
        ("debug_device", "DebugDevice", "asked of a device that was created with the debug layer"),
        ("blob", "TextBlob", "a text, as of D3D12SerializeRootSignature's error")]),
    ("DXCore", "d3d12", [
        ("dxcore_factory", "DxCoreFactory", "the factory"),
        ("dxcore_factory", "DxCoreAdapterList", "a list of adapters"),
        ("dxcore_adapter", "DxCoreAdapter", "an adapter")]),
    ("DXGI", "d3d12", [
        ("dxgi_factory", "DxgiFactory", "the factory"), ("dxgi_adapter", "DxgiAdapter", "an adapter")]),
]
BASES = {
    "UnsupportedDevice": "d3d12/device/unsupported_device.h", "UnsupportedCommands": "d3d12/lists/unsupported_commands.h",
    "NamedObject": "com/private_data.h", "DmlObject": "dml/object.h",
}
# DeviceChild is a template of both folders.
CHILDREN = {"d3d12": ("d3d12/device/device_child.h", ["ID3D12Object", "ID3D12DeviceChild"]),
            "dml": ("dml/device_child.h", ["IDMLObject", "IDMLDeviceChild"])}
# Which QueryInterface answers besides those that a class is derived from.
MORE = {("d3d12", "InfoQueue"): ["ID3D12InfoQueue"],
        ("d3d12", "DebugDevice"): ["ID3D12DebugDevice", "ID3D12DebugDevice1"]}
EXPORTS = [("libdirectml.so", "dml/exports_directml.cc"), ("libd3d12.so", "d3d12/exports_d3d12.cc"),
           ("libdxcore.so", "d3d12/exports_dxcore.cc"), ("libdxgi.so", "d3d12/exports_dxgi.cc")]
IUNKNOWN = {"QueryInterface", "AddRef", "Release"}
HEAD = """# Interfaces and methods

Written by `./dev generate` from the classes in `src/dml` and `src/d3d12`. Direct3D 12 contains what DirectML needs: buffers,
queues, lists, fences, descriptors. `QueryInterface` for an interface that is not listed returns `E_NOINTERFACE`.

- *works*: does what Microsoft's documentation says, for buffers and compute.
- *does nothing*: accepted, but there is nothing to do.
- *takes null*: accepts null, which resets something; anything else is refused.
- *refused*: the result is in parentheses. Methods of a device post a message that names them. Methods of a command list put the list
  in error, so that `Close` fails and names them.

[api.md](api.md) describes `anydml.h`, AnyDML's additions to DirectML.
"""


@functools.cache
def read(path):
    return re.sub(r"//[^\n]*", "", (ROOT / "src" / path).read_text(encoding="utf-8"))


def header_of(folder, header):
    """Its path below src; no two of a folder have the same name."""
    return str(next((ROOT / "src" / folder).rglob(f"{header}.h")).relative_to(ROOT / "src"))


def block(text, start):
    """The text in the braces that open at or after `start`."""
    begin = text.index("{", start)
    depth = 0
    for i in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[begin:i + 1]
    raise ValueError("braces do not match")


def class_text(text, name):
    """(bases, body) of a class."""
    found = re.search(rf"^class {name}\b[^{{;]*?:([^{{]*)\{{", text, re.MULTILINE)
    return found.group(1), block(text, found.end() - 1)


@functools.cache
def sources(folder):
    return [read(str(path.relative_to(ROOT / "src"))) for path in sorted((ROOT / "src" / folder).rglob("*.cc"))]


def definition(folder, name, method):
    """The body of a method that is defined in a .cc file of the folder."""
    for text in sources(folder):
        found = re.search(rf"\b{name}::{method}\([^;{{]*\{{", text)
        if found:
            return block(text, found.end() - 1)
    raise ValueError(f"{name}::{method} is defined nowhere")


def methods(folder, name, body):
    """(name, body) of each method of a class, where it says `override`."""
    for found in re.finditer(r"STDMETHODCALLTYPE\s+(\w+)\(", body):
        end = re.compile(r"\boverride\s*([;{])").search(body, found.end())
        method = found.group(1)
        if method in IUNKNOWN:
            continue
        inline = end.group(1) == "{"
        yield method, block(body, end.start(1)) if inline else definition(folder, name, method)


def verdict(body):
    """works, does nothing, or the answer that it refuses with. Only a body without any way to succeed refuses."""
    inner = re.sub(r"\s+", " ", body[1:-1]).strip()
    if re.search(r'\bNotImplemented\("', inner):
        return "E_NOTIMPL"
    if re.search(r'\bUnsupported\("\w+"\);', inner):
        return "a message"
    if "NoSwapChain" in inner:
        return "DXGI_ERROR_UNSUPPORTED"
    if inner in ("", "return S_OK;"):
        return "nothing"
    if re.search(r'"p\w+ must be null', inner) and inner.count("return") == 2:
        return "null"
    # One answer on every way, and that a code of failure. Null pointers may have another.
    answers = {code for answer in re.findall(r"\breturn ([^;]*);", inner)
               for code in re.findall(r"\b(?:S_OK|E_[A-Z]+|DXGI_ERROR_\w+)\b", answer) or ["?"]} - {"E_POINTER", "DXGI_ERROR_INVALID_CALL"}
    if len(answers) == 1 and not answers & {"S_OK", "?"}:
        return answers.pop()
    return "works"


def describe(folder, header, name):
    """(interfaces, [(method, verdict)]) of a class with what it is derived from."""
    interfaces, found = list(MORE.get((folder, name), [])), {}
    text = read(header_of(folder, header))
    todo = [(text, name)]
    while todo:
        text, current = todo.pop(0)
        bases, body = class_text(text, current)
        interfaces += re.findall(r"\bI(?:D3D12|D3DBlob|DML|DXGI|DXCore)\w*", bases)
        # Those of classes within the class are its own, too: interfaces with a chain of their own.
        interfaces += re.findall(r": public (I\w+) \{", body)
        for method, method_body in methods(folder, current, body):
            found.setdefault(method, verdict(method_body))
        for base, path in BASES.items():
            if re.search(rf"\b{base}\b", bases):
                todo.append((read(path), base))
        if re.search(r"\bDeviceChild\b", bases):
            path, more = CHILDREN[folder]
            interfaces += more
            todo.append((read(path), "DeviceChild"))
    return sorted(set(interfaces), key=lambda i: (re.sub(r"\d+$", "", i), i)), sorted(found.items())


def section(folder, header, name, what):
    interfaces, found = describe(folder, header, name)
    lines = [f"### {max((i for i in interfaces), key=lambda i: rank(i, interfaces))}: {what}", "",
             "Interfaces: " + ", ".join(f"`{i}`" for i in interfaces), "", "| | methods |", "|---|---|"]
    by_verdict = {}
    for method, answer in found:
        by_verdict.setdefault(answer, []).append(f"`{method}`")
    for answer in sorted(by_verdict, key=lambda a: ({"works": 0, "nothing": 1, "null": 2}.get(a, 3), a)):
        title = {"works": "works", "nothing": "does nothing", "null": "takes null"}.get(answer, f"refused ({answer})")
        lines.append(f"| {title} | {', '.join(by_verdict[answer])} |")
    return lines + [""]


def rank(interface, interfaces):
    """The main interface is the newest of the family that most of the class's interfaces belong to."""
    stem = re.sub(r"\d+$", "", interface)
    general = {"ID3D12Object", "ID3D12DeviceChild", "ID3D12Pageable", "IDMLObject", "IDMLDeviceChild", "IDMLPageable",
               "IDMLDispatchable", "IDXGIObject", "ID3D12CommandList"}
    version = int(interface[len(stem):] or 0) if stem != "ID3D" else 0
    return (stem not in general, sum(re.sub(r"\d+$", "", i) == stem for i in interfaces), version)


def exported(path):
    return re.findall(r"\b(DMLCreateDevice\w*|D3D12\w+|DXCoreCreate\w+|CreateDXGI\w+)\(\s*(?=[A-Z]|const)",
                      re.sub(r"anydml::\w+\(", "", read(path)))


def page():
    lines = [HEAD, "## Functions", "", "| library | |", "|---|---|"]
    for library, path in EXPORTS:
        lines.append(f"| `{library}` | {', '.join(f'`{name}`' for name in exported(path))} |")
    lines += ["", "There are no root signatures: `D3D12SerializeRootSignature` and its kind answer `E_NOTIMPL`.",
              "`D3D12GetInterface` knows the debug layer only.", ""]
    for title, folder, classes in AREAS:
        lines += [f"## {title}", ""]
        for header, name, what in classes:
            lines += section(folder, header, name, what)
    return "\n".join(lines).rstrip() + "\n"


def main():
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        print("docs/direct3d.md is stale: ./dev generate")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
