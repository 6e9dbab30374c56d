"""What is measured. The worker and the peers know nothing of names or of --quick."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    operator: str  # DirectML's name
    sizes: tuple
    type: str = "float32"
    data: str = "normal"
    axis: int = 0
    k: int = 0
    tuples: int = 0  # of scatter: how many index tuples, and the size of each
    tuple: int = 0
    in_place: bool = False
    dispatches: int = 1
    floor: str = ""  # of latencies: what stands in for moving the bytes
    peers: str = ""  # only those whose names begin so
    quick: bool = True

    def input(self):
        """Cases of one input share its file and one run of the reference."""
        sizes = "x".join(map(str, self.sizes))
        return f"{self.operator}-{self.type}-{self.data}-{sizes}-{self.axis}-{self.tuples}-{self.tuple}"

    def words(self):
        words = {
            "op": "topk" if self.operator == "TOP_K1" else "scatter",
            "type": self.type,
            "data": self.data,
            "sizes": ",".join(map(str, self.sizes)),
        }
        if self.operator == "TOP_K1":
            words.update(axis=self.axis, k=self.k)
        else:
            words.update(tuples=self.tuples, tuple=self.tuple, in_place=int(self.in_place))
            words.update(dispatches=self.dispatches)
            if self.floor:
                words.update(floor=self.floor)
        return words


def _top_k(sizes, ks, axis=None, type="float32", data="normal", quick=True):
    axis = len(sizes) - 1 if axis is None else axis
    for k in ks:
        name = f"topk-{'x'.join(map(str, sizes))}-k{k}"
        if axis != len(sizes) - 1:
            name += f"-axis{axis}"
        if data != "normal":
            name += f"-{data}"
        if type != "float32":
            name += f"-{type}"
        yield Case(name, "TOP_K1", tuple(sizes), type, data, axis, k, quick=quick)


def _scatter(name, sizes, tuples, tuple_size, quick=True):
    for in_place in (False, True):
        yield Case(f"scatter-{name}{'-in-place' if in_place else ''}", "SCATTER_ND", tuple(sizes),
                   tuples=tuples, tuple=tuple_size, in_place=in_place, quick=quick)


def _latency(name, dispatches, floor):
    return Case(f"scatter-{name}", "SCATTER_ND", (8,), tuples=4, tuple=1, dispatches=dispatches, floor=floor,
                peers="onnxruntime")  # whose Run is a submission too; numpy's assignment is none


def all_cases():
    million = 1000 * 1000
    cases = [
        *_top_k((1, million), (1, 10, 100, 1000, 100000)),
        # Shorter ones, for time against length.
        *(c for length in (1000, 10 * 1000, 100 * 1000) for c in _top_k((1, length), (10,))),
        # Not in a quick run: sorting 2^24 elements takes the reference ten seconds.
        *_top_k((1, 1 << 24), (10, 1000), quick=False),
        *_top_k((1000, 1000), (1, 5, 10, 100, 500)),
        *_top_k((64, 32000), (1, 40, 50, 1000)),
        *_top_k((10000, 100), (10,)),
        *_top_k((1000, 1000), (10,), axis=0),
        *_top_k((8, 1000, 256), (10,), axis=1),
        *(c for data in ("ascending", "descending", "equal") for c in _top_k((1, million), (100,), data=data)),
        *(c for type in ("int8", "float16") for sizes, k in (((1, million), 100), ((1000, 1000), 10),
                                                             ((64, 32000), 50))
          for c in _top_k(sizes, (k,), type=type)),
        # The batch sizes and lengths of the benchmark of RAFT's select_k.
        *_top_k((20000, 500), (1, 16, 64, 256), quick=False),
        *_top_k((1000, 10 * 1000), (1, 16, 64, 256), quick=False),
        *_top_k((100, 100 * 1000), (1, 16, 64, 256), quick=False),
        *_top_k((10, million), (1, 16, 64, 256), quick=False),
        # Sampling from language models: Llama 3's and Qwen 2's vocabularies.
        *_top_k((1, 128256), (50,)),
        *_top_k((32, 128256), (50,), quick=False),
        *_top_k((1, 151936), (20,), quick=False),
        # Sixteen different values; one NaN in a hundred.
        *_top_k((1, million), (100,), data="ties"),
        *_top_k((1000, 1000), (10,), data="ties", quick=False),
        *_top_k((1, million), (100,), data="nan"),
        *_top_k((64, 32000), (50,), data="nan", quick=False),
        *_scatter("16777216-1000000-scalars", (1 << 24,), million, 1),
        *_scatter("65536x256-16384-rows", (65536, 256), 16384, 1),
        *_scatter("4096x4096-65536-pairs", (4096, 4096), 65536, 2),
        # A step of 32 sequences into a cache of keys.
        *_scatter("131072x128-32-rows", (131072, 128), 32, 1, quick=False),
        _latency("latency-one-submission", 1, "handover"),
        _latency("latency-of-1000-dispatches", 1000, "loop"),
        # For the test of this benchmark; too small to say anything.
        *_top_k((4, 100), (3,), quick=False),
        *_scatter("64x8-5-rows", (64, 8), 5, 1, quick=False),
    ]
    return cases


TINY = ("topk-4x100-k3", "scatter-64x8-5-rows", "scatter-64x8-5-rows-in-place")
