// node --test tests/js: the simulation's step on what Python computed. VECTORS is the folder that holds it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const read = (name) => readFileSync(`${process.env.VECTORS}/${name}`, "utf8");
const { step, summary, uniform } = await import(`data:text/javascript,${encodeURIComponent(read("loss_scale.js"))}`);
const { draws, runs } = JSON.parse(read("runs.json"));

test("the generator draws Python's numbers, bit for bit", () => {
  let [seed, drawn] = [draws.seed, 0];
  for (const wanted of draws.numbers) {
    [seed, drawn] = uniform(seed);
    assert.equal(drawn, wanted);
  }
});

for (const { parameters, start, states } of runs) {
  test(`${states.length} steps with ${JSON.stringify(parameters)}`, () => {
    let state = start;
    for (const wanted of states) {
      const before = JSON.stringify(state);
      const next = step(state, parameters);
      assert.equal(JSON.stringify(state), before, "a step must not change the state it is given");
      state = next;
      assert.deepEqual(Object.keys(state).sort(), Object.keys(wanted).sort());
      for (const [name, value] of Object.entries(wanted)) {
        if (name === "exponent" || name === "moved") assert.ok(Math.abs(state[name] - value) < 1e-9, `${name}: ${state[name]}, not ${value}`);
        else assert.equal(state[name], value, `${name} at step ${wanted.step}`);
      }
    }
  });
}

test("what is said", () => {
  const { parameters, start, states } = runs[0];
  assert.match(summary(start, [], parameters), /^Not started\. The scale is 2\^15\.$/);
  assert.match(summary(states.at(-1), states, parameters), /^Step \d+: scale 2\^.*of the gradients lost to underflow; \d+ skipped in all\./);
  const skipping = states.map((s) => ({ ...s, finite: false }));
  assert.match(summary(states.at(-1), skipping, parameters), /Too many steps are skipped/);
  const losing = states.map((s) => ({ ...s, finite: true, lost: 0.5 }));
  assert.match(summary(states.at(-1), losing, parameters), /50\.0% of the gradients lost.*Many gradients are lost/);
});
