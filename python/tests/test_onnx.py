"""anydml.onnx, with models that the tests write as protobuf bytes."""

import struct
import threading

import numpy as np
import pytest

import anydml.onnx


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def value_info(name, sizes, dtype=1):
    """A size may be a name."""
    dims = b"".join(text(1, number(1, size) if isinstance(size, int) else text(2, size)) for size in sizes)
    return text(1, name) + text(2, text(1, number(1, dtype) + text(2, dims)))


def scale_and_add(sizes=("n", 3)):
    """z = x * [1, 2, 3] + y"""
    weights = number(1, 3) + number(2, 1) + text(8, "w") + text(9, struct.pack("<3f", 1, 2, 3))
    graph = text(1, text(1, "x") + text(1, "w") + text(2, "xw") + text(4, "Mul"))
    graph += text(1, text(1, "xw") + text(1, "y") + text(2, "z") + text(4, "Add"))
    graph += text(2, "test") + text(5, weights)
    graph += text(11, value_info("x", sizes)) + text(11, value_info("y", sizes)) + text(12, value_info("z", sizes))
    return number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 17))


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.full((2, 3), 0.5, np.float32)
Z = [[0.5, 2.5, 6.5], [3.5, 8.5, 15.5]]


@pytest.fixture
def model():
    return anydml.onnx.load(scale_and_add())


def test_what_the_model_takes_and_gives(model):
    assert [value.name for value in model.inputs] == ["x", "y"]
    assert model.inputs[0].dtype == np.float32 and model.inputs[0].shape == (None, 3)
    assert [value.name for value in model.outputs] == ["z"]


def test_a_run(model):
    for _ in range(3):
        outputs = model.run({"x": X, "y": Y})
        assert list(outputs) == ["z"]
        assert outputs["z"].dtype == np.float32 and outputs["z"].tolist() == Z
    outputs["z"][0, 0] = 7  # the caller owns results
    assert model.run({"x": X, "y": Y})["z"].tolist() == Z


def test_other_sizes_and_layouts(model):
    assert model.run({"x": X[:1], "y": Y[:1]})["z"].tolist() == Z[:1]
    backwards = np.ascontiguousarray(X[::-1])[::-1]
    assert model.run({"x": backwards, "y": np.asfortranarray(Y)})["z"].tolist() == Z
    assert model.run({"x": X.astype(">f4"), "y": Y})["z"].tolist() == Z
    assert model.run({"x": X[:0], "y": Y[:0]})["z"].shape == (0, 3)


def test_a_file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(scale_and_add())
    for name in (path, str(path)):
        assert anydml.onnx.load(name, device="cpu").run({"x": X, "y": Y})["z"].tolist() == Z


def test_a_model_proto():
    class ModelProto:
        def SerializeToString(self):
            return scale_and_add()

    assert anydml.onnx.load(ModelProto()).run({"x": X, "y": Y})["z"].tolist() == Z


@pytest.mark.parametrize("inputs, sentence", [
    ({"x": X}, 'input "y" is missing: nx3 of float'),
    ({"x": X, "y": Y, "q": Y}, 'the model has no input "q"; it has x, y'),
    ({"x": X, "y": Y[:1]}, 'input "y" is 1x3 of float; the model takes nx3 of float'),
    ({"x": X[:, :2], "y": Y}, 'input "x" is 2x2 of float; the model takes nx3 of float'),
    ({"x": X.astype(np.float64), "y": Y}, 'input "x" is 2x3 of double; the model takes nx3 of float'),
])
def test_bad_inputs_leave_the_model_as_it_was(model, inputs, sentence):
    with pytest.raises(ValueError) as error:
        model.run(inputs)
    assert str(error.value) == sentence
    assert model.run({"x": X, "y": Y})["z"].tolist() == Z


def test_bad_types(model):
    with pytest.raises(TypeError, match="complex64"):
        model.run({"x": X.astype(np.complex64), "y": Y})


def test_bad_models(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        anydml.onnx.load(tmp_path / "none.onnx")
    for end in range(0, len(scale_and_add()), 7):
        try:
            anydml.onnx.load(scale_and_add()[:end])
        except (ValueError, NotImplementedError) as error:
            assert str(error)


def test_threads_take_turns(model):
    wrong = []

    def work(rows):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        for _ in range(20):
            if (model.run({"x": x, "y": x})["z"] != x * [1, 2, 3] + x).any():
                wrong.append(rows)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_profile_says_where_the_time_goes(model):
    with pytest.raises(ValueError, match="has not been run yet"):
        model.profile()
    model.run({"x": X, "y": Y})
    for profile in (model.profile(), model.profile({"x": X, "y": Y})):
        assert len(profile) == 1 and profile[0]["calls"] == 1
        assert len(profile[0]["nodes"]) == 2 and "Mul" in profile[0]["nodes"][0]  # fused
        assert 0 < profile[0]["seconds"] <= profile.seconds
        assert profile[0]["implementation"] in str(profile)


# ---- Names that are not UTF-8 ----

RAW, ESCAPED = b"a\xff\xfe", r"a\xff\xfe"


def model_of(nodes, inputs, outputs):
    """Nodes: type, names of inputs, names of outputs, name."""
    graph = b"".join(text(1, b"".join([*(text(1, name) for name in reads), *(text(2, name) for name in writes), text(3, name),
                                       text(4, kind)])) for kind, reads, writes, name in nodes)
    graph += text(2, "test") + b"".join(text(11, value_info(name, ("n", 3))) for name in inputs)
    graph += b"".join(text(12, value_info(name, ("n", 3))) for name in outputs)
    return number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 17))


def test_a_model_with_names_that_are_not_utf8():
    model = anydml.onnx.load(model_of([("Neg", [RAW], [b"o\x80"], b"n\xc3")], [RAW], [b"o\x80"]))
    assert [value.name for value in model.inputs + model.outputs] == [ESCAPED, r"o\x80"]
    outputs = model.run({model.inputs[0].name: X})
    assert list(outputs) == [r"o\x80"] and (outputs[r"o\x80"] == -X).all()
    profile = model.profile()
    assert r"n\xc3" in profile[0]["nodes"][0] and r"n\xc3" in str(profile)
    for inputs, sentence in (({}, rf'input "{ESCAPED}" is missing: nx3 of float'),
                             ({"q": X}, rf'the model has no input "q"; it has {ESCAPED}'),
                             ({"a\udcff\udcfe": X}, rf'the model has no input "a\udcff\udcfe"; it has {ESCAPED}'),
                             ({ESCAPED: X[:, :2]}, rf'input "{ESCAPED}" is 2x2 of float; the model takes nx3 of float')):
        with pytest.raises(ValueError) as error:
            model.run(inputs)
        assert str(error.value) == sentence


@pytest.mark.parametrize("contents, kind, sentence", [
    (model_of([("Neg", [RAW], ["o"], "")], ["x"], ["o"]), ValueError, rf'node 0 (Neg) reads "{ESCAPED}", which nothing writes'),
    (model_of([("Neg", ["x"], [RAW], "")] * 2, ["x"], [RAW]), ValueError, rf'"{ESCAPED}" is written twice'),
    (model_of([(RAW, ["x"], ["o"], "")], ["x"], ["o"]), NotImplementedError, ESCAPED),
])
def test_sentences_about_names_that_are_not_utf8(contents, kind, sentence):
    with pytest.raises(kind) as error:
        anydml.onnx.load(contents).run({"x": X})
    assert sentence in str(error.value)


def test_an_escaped_name_does_not_take_the_place_of_the_same_name():
    model = anydml.onnx.load(model_of([("Sub", [RAW, ESCAPED], ["o"], "")], [RAW, ESCAPED], ["o"]))
    with pytest.raises(ValueError, match="is missing"):
        model.run({ESCAPED: X})


@pytest.mark.parametrize("name", [3, b"x", None])
def test_names_of_other_types(model, name):
    with pytest.raises(TypeError, match="of an input is not a str"):
        model.run({name: X, "y": Y})


def test_paths_that_are_not_utf8(tmp_path):
    path = tmp_path / "\udcff.onnx"
    with pytest.raises(ValueError, match=r"/\\xff.onnx: No such file"):
        anydml.onnx.load(path)
    path.write_bytes(scale_and_add())
    for name in (path, str(path)):
        assert anydml.onnx.load(name).run({"x": X, "y": Y})["z"].tolist() == Z


def test_a_path_is_not_cut_at_a_null_character(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(scale_and_add())
    with pytest.raises(ValueError, match="has a null character in it"):
        anydml.onnx.load(f"{path}\0.txt")
