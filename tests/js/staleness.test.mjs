// node --test tests/js: the simulation's step on what Python computed. VECTORS is the folder that holds it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const read = (name) => readFileSync(`${process.env.VECTORS}/${name}`, "utf8");
const { largestStableRate, step, summary, verdict } = await import(`data:text/javascript,${encodeURIComponent(read("staleness.js"))}`);
const { runs, bounds } = JSON.parse(read("runs.json"));

for (const { name, parts, states } of runs) {
  test(`${states.length} updates, ${name}`, () => {
    let state = parts[0].start;
    const settings = parts.flatMap(({ parameters, updates }) => Array(updates).fill(parameters));
    states.forEach((wanted, i) => {
      const before = JSON.stringify(state);
      const next = step(state, settings[i]);
      assert.equal(JSON.stringify(state), before, "a step must not change the state it is given");
      assert.deepEqual(next, wanted); // bit for bit
      state = next;
    });
  });
}

test("the bound on the rate", () => {
  for (const [staleness, wanted] of bounds) assert.ok(Math.abs(largestStableRate(staleness) - wanted) < 1e-12);
});

test("what is said", () => {
  const { parts: [{ start, parameters }], states } = runs[0];
  assert.equal(summary(start, [start], parameters), "Not started. All workers will read version 0.");
  assert.match(summary(states.at(-1), states, parameters), /^Version \d+: staleness of the last 100 writes 3\.0 on average, \d+ at most; \d+\.\d writes per step time\. Were it always 3\.0, rates up to 0\.4[45] would be stable; the rate is 0\.2\. Distance/);
  assert.match(summary(states[0], [start, states[0]], parameters), /^Version 1: staleness of the last 1 writes 0\.0/);
  const course = (factor) => Array.from({ length: 100 }, (_, i) => ({ error: factor ** i }));
  assert.equal(verdict(course(1.1)), "It diverges.");
  assert.equal(verdict(course(-1.1)), "It diverges.");
  assert.equal(verdict(course(0.9)), "It converges.");
  assert.equal(verdict(course(-1)), "It neither converges nor diverges.");
  assert.equal(verdict(course(0.1)), "It has converged.");
});
