"""Ctrl-C ends a run whose loops take long."""

import os
import signal
import struct
import threading

import pytest
from test_onnx import number, text, value_info

import anydml.onnx

INT64, BOOL = 7, 9


def constant(name, dtype, sizes, data):
    return b"".join(number(1, size) for size in sizes) + number(2, dtype) + text(8, name) + text(9, data)


def long_loop():
    """y = sin(sin(... x)), half a million times: some twenty seconds."""
    body = text(1, text(1, "c") + text(2, "c2") + text(4, "Identity"))
    body += text(1, text(1, "x") + text(2, "x2") + text(4, "Sin")) + text(2, "body")
    body += text(11, value_info("i", (), INT64)) + text(11, value_info("c", (), BOOL)) + text(11, value_info("x", (1,)))
    body += text(12, value_info("c2", (), BOOL)) + text(12, value_info("x2", (1,)))
    loop = text(1, "n") + text(1, "t") + text(1, "x0") + text(2, "y") + text(4, "Loop")
    loop += text(5, text(1, "body") + text(6, body) + number(20, 5))
    graph = text(1, loop) + text(2, "test")
    graph += text(5, constant("n", INT64, (), struct.pack("<q", 500000)))
    graph += text(5, constant("t", BOOL, (), b"\1")) + text(5, constant("x0", 1, (1,), struct.pack("<f", 1)))
    graph += text(12, value_info("y", (1,)))
    return number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 17))


def test_a_loop_can_be_interrupted():
    model = anydml.onnx.load(long_loop())
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.run({})
    timer.join()


def test_a_handler_cannot_run_the_same_model():
    model, said = anydml.onnx.load(long_loop()), []

    def handler(*_):
        with pytest.raises(RuntimeError, match="this thread is running the model"):
            model.run({})
        said.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            model.run({})
    finally:
        signal.signal(signal.SIGALRM, before)
    assert said
