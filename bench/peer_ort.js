// onnxruntime's Node.js package: session.run with preallocated outputs (fetches). The binding
// adds checks in JavaScript, one turn of the event loop and, although the fetches are
// written, a copy of every output into a fresh array.
'use strict';

const fs = require('fs');
const path = require('path');
const readline = require('readline');

const folder = path.join(process.env.BENCH_NODE_MODULES, 'onnxruntime-node');
const ort = require(folder);
const version = require(path.join(folder, 'package.json')).version;

const ARRAYS = {float32: Float32Array, float16: Uint16Array, int8: Int8Array, int64: BigInt64Array};

function allocate(type, sizes) {
  const data = new ARRAYS[type](sizes.reduce((a, b) => a * b, 1));
  return new ort.Tensor(type, data, sizes);
}

// "float32:4,100:...", see tensor.py.
function parseTensor(word) {
  const [type, sizes] = word.split(':');
  return {type, sizes: sizes.split(',').map(Number)};
}

function readTensor(field, type, sizes) {
  const tensor = allocate(type, sizes);
  Buffer.from(tensor.data.buffer).set(fs.readFileSync(`${field}.bin`));
  return tensor;
}

function readIndices(field, sizes) {
  const bytes = fs.readFileSync(`${field}.bin`);
  const indices = new Uint32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  return new ort.Tensor('int64', BigInt64Array.from(indices, BigInt), sizes);
}

let session = null;
let feeds = null;
let fetches = null;

const commands = {
  async load(words) {
    await commands.unload();
    const {type, sizes: allSizes} = parseTensor(words.InputTensor);
    const sizes = allSizes.slice(allSizes.length - Number(words.InputDimensionCount || allSizes.length));
    session = await ort.InferenceSession.create('model.onnx', {
      executionProviders: ['cpu'],
      intraOpNumThreads: Number(process.env.BENCH_THREADS),
      interOpNumThreads: 1,
      logSeverityLevel: 4,
    });
    feeds = {x: readTensor('InputTensor', type, sizes)};
    if (words.op === 'TOP_K1') {
      const result = parseTensor(words.OutputIndexTensor).sizes;
      fetches = {v: allocate(type, result), i: allocate('int64', result)};
    } else {
      const [tuples, tupleSize] = parseTensor(words.IndicesTensor).sizes.slice(-2);
      feeds.i = readIndices('IndicesTensor', [tuples, tupleSize]);
      feeds.u = readTensor('UpdatesTensor', type, [tuples, ...sizes.slice(tupleSize)]);
      // In place: input and output are the same memory.
      fetches = {y: words.in_place ? feeds.x : allocate(type, sizes)};
    }
    return {runs: ['onnxruntime-node']};
  },

  async check(words) {
    const results = await session.run(feeds, fetches);
    Object.keys(fetches).forEach((name, i) => {
      const data = results[name].data;
      fs.writeFileSync(`${words.prefix}.${['values', 'indices'][i]}.bin`,
                       Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    });
    return {};
  },

  async time(words) {
    const warm = Number(words.warm), n = Number(words.n);
    const ms = [];
    for (let i = 0; i < warm + n; ++i) {
      const start = process.hrtime.bigint();
      await session.run(feeds, fetches);
      const end = process.hrtime.bigint();
      if (i >= warm) ms.push(Number(end - start) / 1e6);
    }
    return {ms};
  },

  async unload() {
    if (session) await session.release();
    session = feeds = fetches = null;
    return {};
  },
};

async function main() {
  console.log(JSON.stringify({name: 'onnxruntime-node', version}));
  for await (const line of readline.createInterface({input: process.stdin})) {
    const [command, ...pairs] = line.trim().split(/\s+/);
    const words = Object.fromEntries(pairs.map((pair) => {
      const equals = pair.indexOf('=');
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }));
    let answer;
    try {
      answer = await commands[command](words);
    } catch (error) {
      answer = {error: String(error.message).split('\n')[0].slice(0, 300)};
    }
    console.log(JSON.stringify(answer));
  }
}

main();
