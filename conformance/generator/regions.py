"""Regions of interest in images: pooling, alignment, and gradients."""
import itertools
import math

from generator.arithmetic import NAN, r32
from generator.images import LINEAR, NEAREST
from generator.operation import Data, Result, made, model
from generator.suite import FLOATS, Suite, data


def roi_pooling():
    suite = Suite("ROI_POOLING", "the largest element of each cell of a region; 0 where a cell is empty.")
    regions = [0, 0, 0, 3, 3, 1, 1, 2, 6, 5, 0, 2.5, 0, 4.5, 4, 1, 5, 4, 20, 20]
    sizes, rois = [2, 2, 6, 7], 4
    for name, scale, width, height in (("2x2", 1.0, 2, 2), ("3x2", 1.0, 3, 2), ("scaled", 0.5, 2, 3)):
        def make(t):
            def compute(arrays):
                x, boxes = arrays["InputTensor"], arrays["ROITensor"]

                def half_away(v):
                    return int(math.copysign(math.floor(abs(v) + 0.5), v))

                def cells(first, last, count, index, limit):
                    length = max(last - first + 1, 1)
                    begin = index * length // count + first
                    end = -(-(index + 1) * length // count) + first
                    return range(max(0, min(limit, begin)), max(0, min(limit, end)))

                def one(r, c, oy, ox):
                    batch, *corners = (boxes[0, 0, r, i] for i in range(5))
                    x1, y1, x2, y2 = (half_away(r32(v * scale)) for v in corners)
                    found = [x[int(batch), c, iy, ix] for iy in cells(y1, y2, height, oy, sizes[2])
                             for ix in cells(x1, x2, width, ox, sizes[3])]
                    return max(found) if found else 0.0

                return {"OutputTensor": made([rois, 2, height, width], one)}

            return model("ROI_POOLING", {
                "InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=7)),
                "ROITensor": Data(t, [1, 1, rois, 5], regions), "OutputTensor": Result(t, [rois, 2, height, width])},
                compute, SpatialScale=scale, PooledSize={"Width": width, "Height": height})
        suite.add(name, f"Regions of {width} by {height} cells.", make, strided=True)
    return suite.group


class Alignment:
    """How ROI_ALIGN1 samples one region along one dimension."""

    def __init__(self, first, last, scale, out, size, in_offset, out_offset, least, most, corners, mode):
        self.out, self.size, self.mode = out, size, mode
        start, length = first * scale, (last - first) * scale
        self.samples = max(least, min(most, math.ceil(length / out)), 1)
        steps = out * self.samples
        self.line, self.smooth = [], True
        for i in range(steps):
            t = (i - out_offset) / ((steps - 1) or 1) if corners else (i - out_offset) / steps
            if corners and steps == 1:
                t = 0.5
            self.line.append((t * length + start - in_offset, t))

    def taps(self, o, j):
        """Pixels, weights and the sample's position along the region; no pixels if it is out of bounds."""
        x, t = self.line[o * self.samples + j]
        self.smooth &= x <= -1 or x >= self.size or (0 < x < self.size - 1 and x != int(x))
        if x <= -1 or x >= self.size:
            return [], t
        x = max(0.0, min(self.size - 1.0, x))
        if self.mode == NEAREST:
            return [(min(self.size - 1, math.floor(x + 0.5)), 1.0)], t
        low = min(math.floor(x), self.size - 1)
        return [(low, 1 - (x - low)), (min(low + 1, self.size - 1), x - low)], t


def region_samples(arrays, r, out, image, options):
    """The samples of one region, for each cell."""
    roi = arrays["ROITensor"]
    x1, y1, x2, y2 = (roi[r, i] for i in range(4))
    common = (options["InputPixelOffset"], options["OutputPixelOffset"], options["MinimumSamplesPerOutput"],
              options["MaximumSamplesPerOutput"], options["AlignRegionsToCorners"], options["InterpolationMode"])
    across = Alignment(x1, x2, options["SpatialScaleX"], out[1], image[3], *common)
    down = Alignment(y1, y2, options["SpatialScaleY"], out[0], image[2], *common)
    for oy, ox in itertools.product(range(out[0]), range(out[1])):
        samples = []
        for jy, jx in itertools.product(range(down.samples), range(across.samples)):
            (ys, ty), (xs, tx) = down.taps(oy, jy), across.taps(ox, jx)
            samples.append(([(y, x, wy * wx) for y, wy in ys for x, wx in xs], ty, tx, ys, xs))
        yield (oy, ox), samples
    if options.get("smooth") and not (across.smooth and down.smooth):
        raise ValueError("a sample lies on a pixel")


REGIONS = [0.5, 1, 4.25, 4, 0, 0, 6.5, 5.5, 2, 3, 2, 3, -3, -2, 3, 2.25, 4, 3.5, 9, 8]
ROI_IMAGE, ROI_COUNT, ROI_OUT = [2, 2, 6, 7], 5, [2, 3]
BATCHES = [0, 1, 1, 0, 1]
AVERAGE, MAXIMUM = "DML_REDUCE_FUNCTION_AVERAGE", "DML_REDUCE_FUNCTION_MAX"


def roi_options(**changes):
    return {"InterpolationMode": LINEAR, "SpatialScaleX": 1.0, "SpatialScaleY": 1.0, "InputPixelOffset": 0.5,
            "OutputPixelOffset": -0.5, "MinimumSamplesPerOutput": 1, "MaximumSamplesPerOutput": 4,
            "AlignRegionsToCorners": False, **changes}


ALIGNMENTS = {
    "average": (AVERAGE, roi_options()),
    "largest": (MAXIMUM, roi_options()),
    "nearest": (AVERAGE, roi_options(InterpolationMode=NEAREST)),
    "scaled": (AVERAGE, roi_options(SpatialScaleX=0.5, SpatialScaleY=0.75)),
    "two-samples": (AVERAGE, roi_options(MinimumSamplesPerOutput=2, MaximumSamplesPerOutput=2)),
}
MORE_ALIGNMENTS = {
    "no-offsets": (AVERAGE, roi_options(InputPixelOffset=0.0, OutputPixelOffset=0.0)),
    "corners": (AVERAGE, roi_options(InputPixelOffset=0.0, OutputPixelOffset=0.0, AlignRegionsToCorners=True,
                                     MaximumSamplesPerOutput=1)),
}


def roi_fields(t, index, regions=REGIONS):
    return {"ROITensor": Data(t, [ROI_COUNT, 4], regions), "BatchIndicesTensor": Data(index, [ROI_COUNT], BATCHES)}


def smooth_regions(options):
    """Regions whose samples are between pixels or far outside: implementations disagree about the slope at a
    pixel."""
    corners = [0.75, 1.125, 4.25, 4.375, 1.25, 0.875, 5.0625, 4.625, 2.3125, 3.3125, 2.3125, 3.3125, 20, 20, 26, 26,
               3.6875, 4.125, 1.1875, 1.375]
    scales = options["SpatialScaleX"], options["SpatialScaleY"]
    return [corner / scales[i % 2] for i, corner in enumerate(corners)]


def roi_align_suites():
    for operator, cases in (("ROI_ALIGN", ALIGNMENTS), ("ROI_ALIGN1", {**ALIGNMENTS, **MORE_ALIGNMENTS})):
        suite = Suite(operator, "the mean or the largest of the samples of each cell of a region.")
        for name, (function, options) in cases.items():
            for index in ("UINT32", "UINT64") if name == "average" else ("UINT32",):
                def make(t):
                    def compute(arrays):
                        x, result = arrays["InputTensor"], {}
                        for r, c in itertools.product(range(ROI_COUNT), range(2)):
                            for o, samples in region_samples(arrays, r, ROI_OUT, ROI_IMAGE, options):
                                values = [math.fsum(w * x[BATCHES[r], c, py, px] for py, px,
                                                    w in taps) if taps else 0.25
                                          for taps, *_ in samples]
                                result[(r, c,
                                        *o)] = max(values) if function == MAXIMUM else math.fsum(values) / len(values)
                        return {"OutputTensor": result}

                    given = dict(options)
                    if operator == "ROI_ALIGN":
                        for key in ("InputPixelOffset", "OutputPixelOffset", "AlignRegionsToCorners"):
                            del given[key]
                    return model(operator, {
                        "InputTensor": Data(t, ROI_IMAGE, data(t, math.prod(ROI_IMAGE), seed=8)),
                        **roi_fields(t, index),
                        "OutputTensor": Result(t, [ROI_COUNT, 2, *ROI_OUT], ulps=16, absolute=1e-5)}, compute,
                        ReductionFunction=function, OutOfBoundsInputValue=0.25, **given)

                suite.add(name + ("" if index == "UINT32" else "-uint64"), f"{name.replace('-', ' ').capitalize()}.",
                          make,
                          FLOATS if name in ("average", "largest") else FLOATS[:1],
                          strided=name in ("average", "corners"))
        yield suite.group


def roi_align_gradient():
    suite = Suite("ROI_ALIGN_GRAD", "the gradients of the image and of the regions, together or alone.")
    for name, (function, options) in {**ALIGNMENTS, **MORE_ALIGNMENTS}.items():
        for image, regions in ((True, True), (True, False), (False, True)) if name == "average" else ((True, True),):
            def make(t):
                def compute(arrays):
                    dy, x = arrays["InputGradientTensor"], arrays.get("InputTensor")
                    dx, droi = made(ROI_IMAGE, lambda *c: 0.0), made([ROI_COUNT, 4], lambda *c: 0.0)
                    for r, c in itertools.product(range(ROI_COUNT), range(2)):
                        for o, samples in region_samples(arrays, r, ROI_OUT, ROI_IMAGE, {**options, "smooth": True}):
                            g = dy[(r, c, *o)]
                            if function == MAXIMUM:  # of the first largest sample
                                values = [math.fsum(w * x[BATCHES[r], c, py, px] for py, px, w in taps) if taps else NAN
                                          for taps, *_ in samples]
                                known = [v for v in values if v == v]
                                samples = [samples[values.index(max(known))]] if known else []
                            share = g / len(samples) if samples else 0
                            for taps, ty, tx, ys, xs in samples:
                                for py, px, w in taps:
                                    dx[BATCHES[r], c, py, px] += share * w
                                if taps and regions and options["InterpolationMode"] == LINEAR:
                                    def pixel(i, j):
                                        return x[BATCHES[r], c, ys[i][0], xs[j][0]]
                                    wy, wx = ys[1][1], xs[1][1]
                                    gx = (1 - wy) * (pixel(0, 1) - pixel(0, 0)) + wy * (pixel(1, 1) - pixel(1, 0))
                                    gy = (1 - wx) * (pixel(1, 0) - pixel(0, 0)) + wx * (pixel(1, 1) - pixel(0, 1))
                                    sx, sy = options["SpatialScaleX"], options["SpatialScaleY"]
                                    droi[r, 0] += share * gx * sx * (1 - tx)
                                    droi[r, 1] += share * gy * sy * (1 - ty)
                                    droi[r, 2] += share * gx * sx * tx
                                    droi[r, 3] += share * gy * sy * ty
                    return {"OutputGradientTensor": dx, "OutputROIGradientTensor": droi}

                near = dict(ulps=16, absolute=1e-4)
                fields = {"InputGradientTensor": Data(t, [ROI_COUNT, 2, *ROI_OUT], data(t, 60, seed=9)),
                          **roi_fields(t, "UINT32", smooth_regions(options))}
                if regions or function == MAXIMUM:
                    fields["InputTensor"] = Data(t, ROI_IMAGE, data(t, math.prod(ROI_IMAGE), seed=8))
                if image:
                    fields["OutputGradientTensor"] = Result(t, ROI_IMAGE, **near)
                if regions:
                    fields["OutputROIGradientTensor"] = Result(t, [ROI_COUNT, 4], **near)
                return model(suite.operator, fields, compute, ReductionFunction=function, **options)

            word = "" if image and regions else "-image-only" if image else "-regions-only"
            suite.add(name + word, f"{name.replace('-', ' ').capitalize()}.", make,
                      FLOATS if name == "average" else FLOATS[:1], strided=name == "average")
    return suite.group


def groups():
    return [roi_pooling(), *roi_align_suites(), roi_align_gradient()]
