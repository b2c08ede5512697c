// node --test tests/js: the explorer's arithmetic on what Python counted. VECTORS is the folder that holds it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const read = (name) => readFileSync(`${process.env.VECTORS}/${name}`);
const array = (name, Type) => { const b = read(name); return new Type(b.buffer.slice(b.byteOffset, b.byteOffset + b.length)); };
const { comment, decode, encode, formula, parse, show } = await import(`data:text/javascript,${encodeURIComponent(read("bits.js"))}`);
const formats = JSON.parse(read("formats.json"));
const named = (name) => formats.find((f) => f.name === name);

for (const f of formats) {
  test(`${f.name}: decode and encode as Python does`, () => {
    const [patterns, values] = [array(`${f.name}.patterns`, Uint32Array), array(`${f.name}.values`, Float64Array)];
    assert.equal(patterns.length, values.length);
    patterns.forEach((pattern, i) => {
      const got = decode(pattern, f);
      if (!Object.is(got, values[i])) assert.fail(`${pattern}: ${got}, not ${values[i]}`);
      if (!Number.isNaN(got) && encode(got, f) !== pattern) assert.fail(`${got}: ${encode(got, f)}, not ${pattern}`);
    });
    const [inputs, wanted] = [array("inputs", Float64Array), array(`${f.name}.encoded`, Uint32Array)];
    inputs.forEach((value, i) => {
      if (encode(value, f) !== wanted[i]) assert.fail(`${value}: ${encode(value, f)}, not ${wanted[i]}`);
    });
  });
}

test("what can be typed", () => {
  const cases = { "0.1": 0.1, " -1e-8 ": -1e-8, "2^-24": 2 ** -24, "-2**3": -8, "1/3": 1 / 3, "inf": Infinity, "-Infinity": -Infinity,
    "−5": -5, "+.5": 0.5, "nan": NaN, "": null, "two": null, "1,5": null, "1/": null, "0x10": null };
  for (const [text, wanted] of Object.entries(cases)) assert.ok(Object.is(parse(text), wanted), `${text}: ${parse(text)}`);
});

test("what is said", () => {
  const [half, brain, e4m3] = ["float16", "bfloat16", "float8_e4m3"].map(named);
  const say = (value, f) => comment(value, encode(value, f), f);
  assert.equal(say(257, brain), "off by 0.39%");
  assert.equal(say(257, half), "exact");
  assert.equal(say(70000, half), "overflow");
  assert.equal(say(1e-8, half), "underflow to 0");
  assert.equal(say(1e-7, half), "off by 19%, subnormal");
  assert.equal(say(Infinity, e4m3), "has no infinity");
  assert.equal(show(-0), "−0");
  assert.equal(formula(1, half), "+ 2^−14 × (0 + 1/1024) · subnormal; exponent the lowest exponent, without the leading 1");
});
