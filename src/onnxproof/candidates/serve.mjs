// Sessions of onnxruntime in JavaScript, and a server for them: `node serve.mjs FOLDER` with the onnxruntime-node of that folder, and
// `node serve.mjs FOLDER CHROMIUM [webgpu|nosimd]` with its onnxruntime-web in a page of that browser, to which frames are passed on as they are.
// The frames are those of `process/dialogue.py`; the questions those of `serve.py`.

const MAGIC = "oxp1", PREFIX = 16;
// onnxruntime's types, and numpy's names of the arrays that carry them. JavaScript has no bfloat16 and no float8.
const TYPES = {
  float32: ["tensor(float)", "<f4", Float32Array], float64: ["tensor(double)", "<f8", Float64Array],
  float16: ["tensor(float16)", "<f2", globalThis.Float16Array ?? Uint16Array], bool: ["tensor(bool)", "|b1", Uint8Array],
  int8: ["tensor(int8)", "|i1", Int8Array], uint8: ["tensor(uint8)", "|u1", Uint8Array],
  int16: ["tensor(int16)", "<i2", Int16Array], uint16: ["tensor(uint16)", "<u2", Uint16Array],
  int32: ["tensor(int32)", "<i4", Int32Array], uint32: ["tensor(uint32)", "<u4", Uint32Array],
  int64: ["tensor(int64)", "<i8", BigInt64Array], uint64: ["tensor(uint64)", "<u8", BigUint64Array],
  string: ["tensor(string)", "text", null],
};
const MISSING = { 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4" };
const LEVELS = { disable: "disabled", basic: "basic", extended: "extended", all: "all" };

// Releases before 1.21 know the names only: then whoever asks knows the types, from the file.
function readTypes(ports, names, name) {
  return Object.fromEntries((ports ?? names).map((port) => {
    if (!ports) return [port, ""];
    if (!TYPES[port.type]) throw new Error(`${name} has no ${port.type ?? "sequence"} in JavaScript, as ${port.name} is`);
    return [port.name, TYPES[port.type][0]];
  }));
}

function unpack(ort, told, blobs) {
  return Object.fromEntries(told.map(([name, dtype, shape], place) => {
    const [type, [, , Kind]] = Object.entries(TYPES).find(([, one]) => one[1] === dtype);
    const data = Kind ? new Kind(blobs[place].slice().buffer) : JSON.parse(new TextDecoder().decode(blobs[place]));
    return [name, new ort.Tensor(type, data, shape)];
  }));
}

function pack(names, answer) {
  const blobs = names.map((name) => {
    const { type, data } = answer[name];
    return type === "string" ? new TextEncoder().encode(JSON.stringify(data)) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  });
  return [{ arrays: names.map((name) => [name, TYPES[answer[name].type][1], [...answer[name].dims]]) }, blobs];
}

class Server {
  // `load` gives onnxruntime, `versions` what its answers depend on, `read` a model and the weights beside it.
  constructor(name, provider, versions, load, read) {
    Object.assign(this, { name, provider, versions, load, read, sessions: new Map() });
  }

  async hello() {
    try {
      this.ort = await this.load();
      return [{ versions: await this.versions(), providers: ["CPUExecutionProvider"] }, []];
    } catch (error) {
      return [{ missing: String(error) }, []];
    }
  }

  async open({ session, path, settings }, blobs) {
    if (settings.disabled_optimizers.length) throw new Error(`${this.name} switches no rewrite off by name`);
    const options = { executionProviders: [this.provider], graphOptimizationLevel: LEVELS[settings.optimization], logSeverityLevel: 4 };
    if (settings.threads) options.intraOpNumThreads = settings.threads;
    if (settings.execution === "parallel") options.executionMode = "parallel";
    // wasm takes the number of threads of its first session, and goes on with one where there are none.
    const wasm = this.provider === "cpu" ? {} : this.ort.env.wasm;
    wasm.numThreads = this.threads ??= settings.threads ?? 1;
    const [model, weights] = await this.read(path ?? "", settings.weights ?? "");
    if (weights.length) options.externalData = weights;
    const run = await this.ort.InferenceSession.create(path ? model : blobs[0], options);
    if (wasm.numThreads !== this.threads) throw new Error(`expected ${this.threads} threads, and this page has ${wasm.numThreads}`);
    const inputs = readTypes(run.inputMetadata, run.inputNames, this.name), outputs = readTypes(run.outputMetadata, run.outputNames, this.name);
    this.sessions.set(session, run);
    return [{ inputs, outputs, used: ["CPUExecutionProvider"], assigned: {} }, []];
  }

  async run({ session, arrays }, blobs) {
    const run = this.sessions.get(session);
    return pack(run.outputNames, await run.run(unpack(this.ort, arrays, blobs)));
  }

  async pace({ session, arrays }, blobs) {
    const run = this.sessions.get(session), given = unpack(this.ort, arrays, blobs), seconds = [];
    for (let count = 0, total = 0; count < 32 && (count < 5 || total < 0.1); count++) {
      const began = performance.now();
      await run.run(given);
      if (count > 1) total += seconds[seconds.push((performance.now() - began) / 1e3) - 1];
    }
    return [{ seconds }, []];
  }

  async close({ session }) {
    await this.sessions.get(session)?.release();
    this.sessions.delete(session);
    return [{}, []];
  }

  // The frame that answers a frame.
  async answer(frame) {
    const size = new DataView(frame.buffer, frame.byteOffset).getUint32(4);
    const header = JSON.parse(new TextDecoder().decode(frame.subarray(PREFIX, PREFIX + size)));
    let at = PREFIX + size, told, parts;
    try {
      [told, parts] = await this[header.ask](header, header.blobs.map((length) => frame.subarray(at, (at += length))));
    } catch (error) {
      const words = String(error?.message ?? error).trim();
      // The address of an exception that older builds of wasm do not translate.
      const text = /^\d+$/.test(words) ? `it threw ${words} and said no more, as with an IR version or an opset that is too new for it` : words;
      const clear = text.replace(/unsupported data type: (\d+)/i, (all, kind) => `${all} (${MISSING[kind] ?? "?"}): JavaScript has no such tensors`);
      [told, parts] = [{ error: clear, memory: error instanceof RangeError }, []];
    }
    const sizes = parts.map((part) => part.byteLength), body = sizes.reduce((sum, one) => sum + one, 0);
    const text = new TextEncoder().encode(JSON.stringify({ ...told, blobs: sizes }));
    const answer = new Uint8Array(PREFIX + text.length + body), view = new DataView(answer.buffer);
    answer.set(new TextEncoder().encode(MAGIC));
    view.setUint32(4, text.length);
    view.setBigUint64(8, BigInt(body));
    answer.set(text, PREFIX);
    for (let place = 0, to = PREFIX + text.length; place < parts.length; to += sizes[place++]) answer.set(parts[place], to);
    return answer;
  }
}

// Before 1.19 it is no module.
function loadScript(address) {
  return new Promise((ready, fail) => {
    const script = Object.assign(document.createElement("script"), { src: address, onload: () => ready(globalThis.ort) });
    script.onerror = () => fail(new Error(`it has no ${address}`));
    document.head.append(script);
  });
}

// In the page: ask for a frame, answer it, for ever.
export async function serveInPage() {
  fetch("alive"); // a line that is never answered: the other side sees it end with the page
  const way = location.hash.slice(1), library = `ort/ort.${way === "webgpu" ? "webgpu" : "wasm"}.min`;
  const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
  const file = (path) => bytes(`file?${encodeURIComponent(path)}`);
  const read = async (path, weights) => {
    const names = await (await fetch(`weights?${encodeURIComponent(JSON.stringify([path, weights]))}`)).json();
    return [path && (await file(path)), await Promise.all(names.map(async ([name, at]) => ({ path: name, data: await file(at) })))];
  };
  const load = async () => {
    const ort = await import(new URL(`${library}.mjs`, location).href).catch(() => loadScript(`${library}.js`));
    ort.env.wasm.wasmPaths = new URL("ort/", location).href;
    if (way !== "nosimd") return ort;
    if (!(await fetch("ort/ort-wasm.wasm")).ok) throw new Error("this release has only wasm with SIMD; releases before 1.19 have both");
    ort.env.wasm.simd = false;
    return ort;
  };
  const versions = async () => {
    const known = { onnxruntime: await (await fetch("release")).text(), Chromium: /Chrom\w*\/([\d.]+)/.exec(navigator.userAgent)?.[1] };
    if (way !== "webgpu") return known;
    const adapter = await navigator.gpu?.requestAdapter();
    if (!adapter) throw new Error("this browser has no WebGPU here");
    return { ...known, WebGPU: [adapter.info?.vendor, adapter.info?.architecture].filter(Boolean).join(" ") };
  };
  const server = new Server("onnxruntime-web", way === "webgpu" ? way : "wasm", versions, load, read);
  for (;;) await fetch("answer", { method: "POST", body: await server.answer(await bytes("next")) });
}

// In Node: whole frames from standard input; who asks is gone when it ends, and nobody waits for this process any more.
function listen(take, leave = () => process.exit(0)) {
  let parts = [], held = 0, wanted = PREFIX;
  process.stdin.on("end", leave).on("data", (part) => {
    parts.push(part);
    held += part.length;
    while (held >= wanted) {
      const all = Buffer.concat(parts), whole = PREFIX + all.readUInt32BE(4) + Number(all.readBigUInt64BE(8));
      const done = held >= whole;
      if (done) take(new Uint8Array(all.subarray(0, whole)));
      parts = [done ? all.subarray(whole) : all];
      held = parts[0].length;
      wanted = done ? PREFIX : whole;
    }
  });
}

// The pipe to whoever asks is number 3: what a library prints on standard output is no answer.
function say(fs, answer) {
  for (let at = 0; at < answer.length; ) at += fs.writeSync(3, answer, at);
}

async function serveInNode(fs, folder) {
  const { createRequire } = await import("node:module");
  const load = async () => createRequire(`${folder}/`)("onnxruntime-node");
  const read = async (path, weights) => [path, path ? [] : listWeights(fs, weights).map(([name, at]) => ({ path: name, data: at }))];
  const versions = () => ({ onnxruntime: readRelease(fs, folder, "onnxruntime-node"), Node: process.versions.node });
  const server = new Server("onnxruntime-node", "cpu", versions, load, read);
  let before = Promise.resolve();
  listen((frame) => (before = before.then(async () => say(fs, await server.answer(frame)))));
}

function readRelease(fs, folder, name) {
  return JSON.parse(fs.readFileSync(`${folder}/node_modules/${name}/package.json`)).version;
}

function listWeights(fs, folder) {
  return folder ? fs.readdirSync(folder).filter((name) => name.endsWith(".data")).map((name) => [name, `${folder}/${name}`]) : [];
}

// Frames wait for the page, which is served with all it needs at an address that nobody can guess.
async function serveInBrowser(fs, folder, chromium, way) {
  const { createServer } = await import("node:http"), { spawn } = await import("node:child_process");
  const { randomUUID } = await import("node:crypto"), { tmpdir } = await import("node:os"), { dirname } = await import("node:path");
  const key = randomUUID(), frames = [], waiting = [];
  const match = () => { while (frames.length && waiting.length) waiting.shift().end(frames.shift()); };
  listen((frame) => (frames.push(frame), match()), () => browser.kill("SIGKILL"));
  const pages = {
    "": () => '<!doctype html><script type="module">import { serveInPage } from "./serve.mjs"; serveInPage();</script>',
    "serve.mjs": () => fs.readFileSync(process.argv[1]),
    release: () => readRelease(fs, folder, "onnxruntime-web"),
    file: (path) => fs.readFileSync(path),
    weights: (asked) => JSON.stringify(JSON.parse(asked).flatMap((path, place) => listWeights(fs, place || !path ? path : dirname(path)))),
  };
  const server = createServer(async (request, reply) => {
    const [, given, path, query] = /^\/([^/]*)\/([^?]*)\??(.*)$/.exec(request.url) ?? [];
    if (given !== key) return reply.writeHead(404).end();
    const kind = path.endsWith("mjs") ? "text/javascript" : path.endsWith("wasm") ? "application/wasm" : path ? "application/octet-stream" : "text/html";
    // Isolated, as a page has to be that may use threads.
    reply.setHeader("Content-Type", kind).setHeader("Cross-Origin-Opener-Policy", "same-origin");
    reply.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    if (way === "nosimd" && path.includes("simd")) return reply.writeHead(404).end();
    if (path === "alive") return request.socket.on("close", () => browser.kill("SIGKILL"));
    if (path === "next") return waiting.push(reply), match();
    if (path === "answer") {
      const parts = [];
      for await (const part of request) parts.push(part);
      say(fs, Buffer.concat(parts));
      return reply.end();
    }
    try {
      reply.end(path.startsWith("ort/") ? fs.readFileSync(`${folder}/node_modules/onnxruntime-web/dist/${path.slice(4)}`) : pages[path](decodeURIComponent(query)));
    } catch (error) {
      reply.writeHead(404).end(String(error));
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const profile = fs.mkdtempSync(`${tmpdir()}/onnxproof-browser-`);
  // The debugging pipe is never used: the browser ends when it breaks, also where this process is killed. Root may not use the sandbox.
  const flags = ["--headless=new", "--remote-debugging-pipe", way === "webgpu" ? "--enable-unsafe-webgpu" : "--disable-gpu", "--no-first-run", "--disable-extensions", `--user-data-dir=${profile}`];
  const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const address = `http://127.0.0.1:${server.address().port}/${key}/#${way ?? ""}`;
  const browser = spawn(chromium, [...flags, ...root, address], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const end = (reason) => {
    console.error(`the browser is gone: ${reason}`);
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    process.exit(1);
  };
  browser.on("error", end).on("exit", (code, signal) => setTimeout(end, 100, signal ?? code)); // its children follow it
}

if (globalThis.process?.versions?.node) {
  const fs = await import("node:fs"), [, , folder, chromium, way] = process.argv;
  await (chromium ? serveInBrowser(fs, folder, chromium, way) : serveInNode(fs, folder));
}
