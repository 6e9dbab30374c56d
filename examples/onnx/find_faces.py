#!/usr/bin/env python3
"""find_faces.py PICTURE [--models FOLDER] [--device cpu|cuda]: where there are faces."""

import argparse

import anydml.onnx
import numpy as np

import pictures

SIZE = 640  # of the model's input
# The model processes the picture in steps of 32, 16 and 8 pixels; at each position it scores two squares with
# these edges.
EDGES = {32: (512, 256), 16: (128, 64), 8: (32, 16)}
BASE = 16  # the squares' common centre is that of the first 16 pixels


def candidates(outputs, least):
    """Rectangles (left, top, right, bottom) and how sure the model is of each."""
    found, scores = [], []
    for step, edges in EDGES.items():
        # The scores after those for "no face".
        faces = outputs[f"face_rpn_cls_prob_reshape_stride{step}"][0, len(edges):]
        moves = outputs[f"face_rpn_bbox_pred_stride{step}"][0].reshape(len(edges), 4, *faces.shape[1:])
        for edge, face, (right, down, wider, higher) in zip(edges, faces, moves):
            rows, columns = np.nonzero(face >= least)
            x = columns * step + BASE / 2 + edge * right[rows, columns]
            y = rows * step + BASE / 2 + edge * down[rows, columns]
            half_width = edge * np.exp(wider[rows, columns]) / 2
            half_height = edge * np.exp(higher[rows, columns]) / 2
            found.append(np.stack([x - half_width, y - half_height, x + half_width, y + half_height], axis=1))
            scores.append(face[rows, columns])
    return np.concatenate(found), np.concatenate(scores)


def overlap(a, b):
    """The part of two rectangles' union that both cover."""
    both = np.prod(np.maximum(0, np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])))
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


def without_doubles(rectangles, scores, most=0.5):
    kept = []
    for i in np.argsort(-scores):
        if all(overlap(rectangles[i], rectangles[j]) <= most for j in kept):
            kept.append(i)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture")
    parser.add_argument("--models", default="node_modules")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--least", type=float, default=0.75, help="how sure the model has to be")
    arguments = parser.parse_args()
    picture = pictures.read(arguments.picture)
    scale = SIZE / max(picture.shape[:2])
    small = pictures.resize(picture, round(picture.shape[0] * scale), round(picture.shape[1] * scale))
    padded = np.zeros((SIZE, SIZE, 3), np.float32)
    padded[:small.shape[0], :small.shape[1]] = small
    model = anydml.onnx.load(f"{arguments.models}/retinaface/mnet.25_v2.onnx", device=arguments.device)
    rectangles, scores = candidates(model.run({"data": pictures.planes(padded)}), arguments.least)
    kept = without_doubles(rectangles, scores)
    print(f"{len(kept)} faces")
    for i in kept:
        left, top, right, bottom = rectangles[i] / scale
        print(f"  {right - left:.0f} x {bottom - top:.0f} at {left:.0f}, {top:.0f} ({scores[i]:.0%})")


if __name__ == "__main__":
    main()
