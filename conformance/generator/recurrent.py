"""Recurrent networks in float64, by ONNX's equations, to which the pages of RNN, LSTM and GRU refer."""
import math

from generator.arithmetic import exp, r32
from generator.element_wise import ACTIVATIONS, number
from generator.operation import Data, Result, model
from generator.suite import FLOATS, Suite, data

GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
DEFAULTS = {"RNN": ["TANH"], "LSTM": ["SIGMOID", "TANH", "TANH"], "GRU": ["SIGMOID", "TANH"]}
FORWARD, BACKWARD, BIDIRECTIONAL = "FORWARD", "BACKWARD", "BIDIRECTIONAL"
STEPS, BATCH, INPUTS, UNITS = 4, 3, 2, 5


def softmax(row):
    powers = [exp(x - max(row)) for x in row]
    return [power / math.fsum(powers) for power in powers]


def hardmax(row):
    return [1.0 if i == row.index(max(row)) else 0.0 for i in range(len(row))]


ROW_FUNCTIONS = {"SOFTMAX": softmax, "HARDMAX": hardmax}


def activation(name):
    """Its description, and its function on the units of one element of the batch."""
    if name in ROW_FUNCTIONS:
        return {"Type": f"DML_OPERATOR_ACTIVATION_{name}", "Desc": {}}, ROW_FUNCTIONS[name]
    row = ACTIVATIONS[name]
    given = {k: number(v) for k, v in row.attributes[0].items()}
    desc = {"Type": f"DML_OPERATOR_ACTIVATION_{name}", "Desc": row.attributes[0]}
    return desc, lambda values: [row.function(v, "FLOAT32", **given) for v in values]


def clipped(values, threshold):
    return [max(-threshold, min(threshold, v)) for v in values]


class Cell:
    """One direction of a network."""

    def __init__(self, operator, arrays, direction, functions, options):
        self.operator, self.arrays, self.direction = operator, arrays, direction
        self.functions, self.options = functions, options
        self.units = arrays["RecurrenceTensor"].sizes[3]

    def bias(self, half, gate, unit):
        if "BiasTensor" not in self.arrays:
            return 0
        at = (half * GATES[self.operator] + gate) * self.units + unit
        return self.arrays["BiasTensor"][(0, 0, self.direction, at)]

    def of_input(self, x, gate):
        return [math.fsum(v * self.arrays["WeightTensor"][(0, self.direction, gate * self.units + unit, i)]
                          for i, v in enumerate(x)) + self.bias(0, gate, unit) for unit in range(self.units)]

    def of_state(self, state, gate):
        return [math.fsum(v * self.arrays["RecurrenceTensor"][(0, self.direction, gate * self.units + unit, i)]
                          for i, v in enumerate(state)) + self.bias(1, gate, unit) for unit in range(self.units)]

    def sums(self, x, state, gate):
        return [a + b for a, b in zip(self.of_input(x, gate), self.of_state(state, gate))]

    def peephole(self, sums, gate, cell):
        if "PeepholeTensor" not in self.arrays:
            return sums
        weights = self.arrays["PeepholeTensor"]
        return [s + weights[(0, 0, self.direction, gate * self.units + u)] * cell[u] for u, s in enumerate(sums)]

    def step(self, x, hidden, cell):
        """The hidden and the cell state after the step."""
        return getattr(self, self.operator.lower())(x, hidden, cell)

    def rnn(self, x, hidden, cell):
        return self.functions[0](self.sums(x, hidden, 0)), cell

    def lstm(self, x, hidden, cell):
        f, g, h = self.functions
        threshold = self.options["ClipThreshold"] if self.options["UseClipThreshold"] else math.inf
        i = f(clipped(self.peephole(self.sums(x, hidden, 0), 0, cell), threshold))
        if self.options["CoupleInputForget"]:
            forget = [1 - v for v in i]
        else:
            forget = f(clipped(self.peephole(self.sums(x, hidden, 2), 2, cell), threshold))
        c = g(clipped(self.sums(x, hidden, 3), threshold))
        cell = [a * b + v * w for a, b, v, w in zip(forget, cell, i, c)]
        o = f(clipped(self.peephole(self.sums(x, hidden, 1), 1, cell), threshold))
        return [a * b for a, b in zip(o, h(cell))], cell

    def gru(self, x, hidden, cell):
        f, g = self.functions
        z, r = f(self.sums(x, hidden, 0)), f(self.sums(x, hidden, 1))
        if self.options["LinearBeforeReset"]:
            seen = [a * b for a, b in zip(r, self.of_state(hidden, 2))]
        else:
            seen = self.of_state([a * b for a, b in zip(r, hidden)], 2)
        h = g([a + b for a, b in zip(self.of_input(x, 2), seen)])
        return [(1 - a) * b + a * c for a, b, c in zip(z, h, hidden)], cell


def run(operator, arrays, backward, functions, options):
    """All three outputs. `backward` has an element for each direction."""
    _, steps, batch, inputs = arrays["InputTensor"].sizes
    units = arrays["RecurrenceTensor"].sizes[3]
    sequence, single, cell_single = {}, {}, {}
    for d, reverse in enumerate(backward):
        network = Cell(operator, arrays, d, functions[d], options)
        for b in range(batch):
            def start(field):
                return [arrays[field][(0, d, b, u)] if field in arrays else 0.0 for u in range(units)]
            hidden, cell = start("HiddenInitTensor"), start("CellMemInitTensor")
            length = min(steps, arrays["SequenceLengthsTensor"][(0, 0, 0, b)]) if "SequenceLengthsTensor" in arrays \
                else steps
            for t in reversed(range(length)) if reverse else range(length):
                hidden, cell = network.step([arrays["InputTensor"][(0, t, b, i)] for i in range(inputs)], hidden, cell)
                sequence.update({(t, d, b, u): v for u, v in enumerate(hidden)})
            sequence.update({(t, d, b, u): 0.0 for t in range(length, steps) for u in range(units)})
            single.update({(0, d, b, u): v for u, v in enumerate(hidden)})
            cell_single.update({(0, d, b, u): v for u, v in enumerate(cell)})
    return {"OutputSequenceTensor": sequence, "OutputSingleTensor": single, "OutputCellSingleTensor": cell_single}


def build(operator, direction=FORWARD, optional=(), lengths=None, activations=None, outputs=None, steps=STEPS,
          batch=BATCH, inputs=INPUTS, units=UNITS, **options):
    """`optional`: bias, hidden, cell, peephole. `outputs`: sequence, single, cell; all of them if it is absent."""
    gates, directions = GATES[operator], 2 if direction == BIDIRECTIONAL else 1
    names = activations or DEFAULTS[operator] * directions
    described = [activation(name) for name in names]
    each = len(DEFAULTS[operator])
    functions = [[function for _, function in described[d * each:(d + 1) * each]] for d in range(directions)]
    if operator == "LSTM":
        options = {"ClipThreshold": 0.0, "UseClipThreshold": False, "CoupleInputForget": False, **options}
    if operator == "GRU":
        options = {"LinearBeforeReset": False, **options}
    state = [1, directions, batch, units]

    def make(t):
        def tensor(sizes, seed):  # up to about 1: their sums stay where activations vary
            return Data(t, sizes, data(t, math.prod(sizes), seed=seed, divisor=37))

        fields = {"InputTensor": tensor([1, steps, batch, inputs], 31),
                  "WeightTensor": tensor([1, directions, gates * units, inputs], 32),
                  "RecurrenceTensor": tensor([1, directions, gates * units, units], 33)}
        sizes = {"bias": ("BiasTensor", [1, 1, directions, 2 * gates * units]), "hidden": ("HiddenInitTensor", state),
                 "cell": ("CellMemInitTensor", state), "peephole": ("PeepholeTensor", [1, 1, directions, 3 * units])}
        for seed, name in enumerate(optional, 34):
            fields[sizes[name][0]] = tensor(sizes[name][1], seed)
        if lengths:
            fields["SequenceLengthsTensor"] = Data("UINT32", [1, 1, 1, batch], lengths)
        all_outputs = {"sequence": ("OutputSequenceTensor", [steps, directions, batch, units]),
                       "single": ("OutputSingleTensor", state), "cell": ("OutputCellSingleTensor", state)}
        for name in outputs or (all_outputs if operator == "LSTM" else ("sequence", "single")):
            fields[all_outputs[name][0]] = Result(t, all_outputs[name][1], ulps=64, absolute=1e-5)
        rounded = {k: r32(v) if isinstance(v, float) else v for k, v in options.items()}
        backward = [direction == BACKWARD, True][:directions]
        return model(operator, fields, lambda arrays: run(operator, arrays, backward, functions, rounded),
                     ActivationDescCount=len(names), ActivationDescs=[desc for desc, _ in described],
                     Direction=f"DML_RECURRENT_NETWORK_DIRECTION_{direction}", **options)
    return make


def add_common(suite, everything):
    """The cases that the three operators share. `everything`: all their optional inputs."""
    operator = suite.operator
    for direction in (FORWARD, BACKWARD, BIDIRECTIONAL):
        name = direction.lower()
        suite.add(name, f"{direction}, without what is optional.", build(operator, direction))
        suite.add(f"{name}-everything", f"{direction}, with all optional inputs.",
                  build(operator, direction, everything, [2, 4, 1]), strided=True)
    for name in everything:
        suite.add(f"only-{name}", f"Of the optional inputs, only {name}.", build(operator, optional=(name,)),
                  FLOATS[:1])
    suite.add("lengths", "Sequences end early, too: one before its first step, one beyond the last one.",
              build(operator, BIDIRECTIONAL, ("hidden",), [3, 0, 7]), FLOATS[:1])
    suite.add("only-sequence", "No other output.", build(operator, outputs=("sequence",)), FLOATS[:1])
    suite.add("only-single", "No other output.", build(operator, outputs=("single",)), FLOATS[:1])
    suite.add("one-step", "A cell.", build(operator, optional=everything, steps=1))
    suite.add("wide", "More units and a larger batch than vectors have elements.",
              build(operator, optional=("bias",), steps=2, batch=6, inputs=9, units=19), FLOATS[:1])


def rnn():
    suite = Suite("RNN", "f(X W + H R + both biases), in every direction, with every activation.")
    add_common(suite, ("bias", "hidden"))
    for name in ("SIGMOID", "RELU", "LEAKY_RELU", "ELU", "HARD_SIGMOID", "IDENTITY", "LINEAR", "PARAMETRIC_SOFTPLUS",
                 "SCALED_ELU", "SCALED_TANH", "SOFTPLUS", "SOFTSIGN", "CELU", "GELU", "SOFTMAX"):
        suite.add(name.lower().replace("_", "-"), f"With {name}.",
                  build("RNN", optional=("bias",), activations=[name], steps=2), FLOATS[:1])
    for name in ("THRESHOLDED_RELU", "SHRINK", "HARDMAX"):
        suite.add(name.lower().replace("_", "-"), f"With {name}.",
                  build("RNN", optional=("bias",), activations=[name], steps=1), FLOATS[:1])
    suite.add("two-activations", "Each direction has its own.",
              build("RNN", BIDIRECTIONAL, ("bias",), activations=["TANH", "RELU"]), FLOATS[:1])
    return suite.group


def lstm():
    suite = Suite("LSTM", "gates i, o, f and c, peepholes, coupled gates and clipping, in every direction.")
    add_common(suite, ("bias", "hidden", "cell", "peephole"))
    suite.add("only-cell-output", "No other output.", build("LSTM", outputs=("cell",)), FLOATS[:1])
    suite.add("coupled", "The forget gate is 1 less the input gate.",
              build("LSTM", optional=("bias", "cell"), CoupleInputForget=True))
    suite.add("coupled-peephole", "The same, with peepholes.",
              build("LSTM", BIDIRECTIONAL, ("cell", "peephole"), CoupleInputForget=True), FLOATS[:1])
    suite.add("clipped", "The sums of all gates are clipped.",
              build("LSTM", optional=("bias", "hidden", "cell", "peephole"), UseClipThreshold=True, ClipThreshold=0.25))
    suite.add("not-clipped", "ClipThreshold counts for nothing when it is not used.",
              build("LSTM", optional=("bias",), UseClipThreshold=False, ClipThreshold=0.25), FLOATS[:1])
    suite.add("activations", "Each activation is where it belongs, in each direction.",
              build("LSTM", BIDIRECTIONAL, ("bias",), activations=[
                  "HARD_SIGMOID", "SCALED_TANH", "SOFTSIGN", "SIGMOID", "LEAKY_RELU", "ELU"]), FLOATS[:1])
    suite.add("softmax-gates", "Gates that are shares of all units.",
              build("LSTM", optional=("bias", "cell"), activations=["SOFTMAX", "TANH", "TANH"]), FLOATS[:1])
    return suite.group


def gru():
    suite = Suite("GRU", "gates z, r and h, the reset before or after the product, in every direction.")
    add_common(suite, ("bias", "hidden"))
    for direction in (FORWARD, BACKWARD, BIDIRECTIONAL):
        suite.add(f"linear-before-reset-{direction.lower()}", f"{direction}; the product comes before the reset.",
                  build("GRU", direction, ("bias", "hidden"), [4, 1, 3], LinearBeforeReset=True),
                  strided=direction == BIDIRECTIONAL)
    suite.add("linear-before-reset-without-bias", "The product comes before the reset.",
              build("GRU", optional=("hidden",), LinearBeforeReset=True), FLOATS[:1])
    suite.add("activations", "Each activation is where it belongs, in each direction.",
              build("GRU", BIDIRECTIONAL, ("bias", "hidden"), activations=[
                  "HARD_SIGMOID", "SCALED_TANH", "SOFTSIGN", "RELU"]), FLOATS[:1])
    suite.add("softmax-gates", "Gates that are shares of all units.",
              build("GRU", optional=("hidden",), activations=["SOFTMAX", "TANH"]), FLOATS[:1])
    return suite.group


def groups():
    return [rnn(), lstm(), gru()]
