"""Pictures as NumPy arrays, for the examples beside it."""

import numpy as np


def read(path):
    """Height x width x 3, UINT8, RGB. PPM files are read here, others with Pillow, where it is installed."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(b"P6"):
        try:
            from PIL import Image
        except ImportError:
            raise SystemExit(f"{path}: without Pillow only binary PPM files can be read "
                             "(ImageMagick: convert picture.jpg picture.ppm)")
        return np.asarray(Image.open(path).convert("RGB"))
    fields, at = [], 2
    while len(fields) < 3:
        while data[at:at + 1].isspace() or data[at:at + 1] == b"#":
            at = data.index(b"\n", at) + 1 if data[at:at + 1] == b"#" else at + 1
        end = at
        while data[end:end + 1].isdigit():
            end += 1
        if end == at:
            raise SystemExit(f"{path}: not a PPM file")
        fields.append(int(data[at:end]))
        at = end
    width, height, most = fields
    if most != 255:
        raise SystemExit(f"{path}: only 8 bits per colour are read")
    return np.frombuffer(data, np.uint8, width * height * 3, at + 1).reshape(height, width, 3)


def resize(picture, height, width):
    """Bilinear; FLOAT32."""
    def places(size, new):
        at = np.clip((np.arange(new) + 0.5) * size / new - 0.5, 0, size - 1)
        low = np.minimum(at.astype(int), max(size - 2, 0))
        return low, np.minimum(low + 1, size - 1), (at - low).astype(np.float32)

    picture = picture.astype(np.float32)
    top, bottom, down = places(picture.shape[0], height)
    left, right, across = places(picture.shape[1], width)
    rows = picture[top] * (1 - down)[:, None, None] + picture[bottom] * down[:, None, None]
    return rows[:, left] * (1 - across)[None, :, None] + rows[:, right] * across[None, :, None]


def planes(picture):
    """Height x width x 3 as the 1 x 3 x height x width that models take."""
    return np.ascontiguousarray(picture.transpose(2, 0, 1)[None], dtype=np.float32)
