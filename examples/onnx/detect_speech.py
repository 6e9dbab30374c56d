#!/usr/bin/env python3
"""detect_speech.py SOUND.wav [--models FOLDER] [--device cpu|cuda]: when somebody speaks."""

import argparse
import wave

import anydml.onnx
import numpy as np

RATE = 16000   # samples per second that the model takes
STEP = 512  # samples per inference
CONTEXT = 64  # preceding samples that the model also takes


def read(path):
    """FLOAT32 from -1 to 1, of one channel, at RATE."""
    with wave.open(path, "rb") as file:
        if file.getsampwidth() != 2:
            raise SystemExit(f"{path}: has {8 * file.getsampwidth()} bits per sample; only 16 are read")
        channels, rate = file.getnchannels(), file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    sound = samples.reshape(-1, channels).mean(axis=1, dtype=np.float32) / 32768
    if rate == RATE:
        return sound
    places = np.arange(int(len(sound) * RATE / rate)) * (rate / RATE)
    return np.interp(places, np.arange(len(sound)), sound).astype(np.float32)


def probabilities(model, sound):
    """Of speech, for each step."""
    state = np.zeros((2, 1, 128), np.float32)
    padded = np.concatenate([np.zeros(CONTEXT, np.float32), sound])
    for at in range(0, len(sound) - STEP + 1, STEP):
        outputs = model.run({"input": padded[None, at:at + CONTEXT + STEP], "state": state, "sr": np.int64(RATE)})
        state = outputs["stateN"]
        yield float(outputs["output"][0, 0])


def spans(values, begin=0.5, end=0.35):
    """Steps from one that is sure to be speech to one that is rather not."""
    since = None
    for i, value in enumerate(values):
        if since is None and value >= begin:
            since = i
        elif since is not None and value < end:
            yield since, i
            since = None
    if since is not None:
        yield since, i + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sound")
    parser.add_argument("--models", default="node_modules")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    model = anydml.onnx.load(f"{arguments.models}/@ricky0123/vad-web/dist/silero_vad_v5.onnx", device=arguments.device)
    values = list(probabilities(model, read(arguments.sound)))
    seconds = STEP / RATE
    for first, last in spans(values):
        print(f"speech from {first * seconds:.2f} s to {last * seconds:.2f} s")
    print(f"{len(values) * seconds:.2f} s of sound, at most {max(values, default=0):.0%} sure of speech")


if __name__ == "__main__":
    main()
