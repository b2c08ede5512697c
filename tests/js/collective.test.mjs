// node --test tests/js: the race's steps on what Python computed. VECTORS is the folder that holds it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const read = (name) => readFileSync(`${process.env.VECTORS}/${name}`, "utf8");
const { amount, finish, over, plan, step, summary } = await import(`data:text/javascript,${encodeURIComponent(read("collective.js"))}`);
const { races, plans, amounts } = JSON.parse(read("races.json"));

for (const { name, settings, start, states } of races) {
  test(`${states.length} messages, ${name}`, () => {
    let state = start;
    states.forEach((wanted, i) => {
      const before = JSON.stringify(state);
      const next = step(state, settings[i]);
      assert.equal(JSON.stringify(state), before, "a step must not change the state it is given");
      assert.deepEqual(next, wanted); // bit for bit
      state = next;
    });
  });
}

test("the order of messages", () => {
  for (const { lane, workers, chunks, messages } of plans) assert.deepEqual(plan(lane, workers, chunks), messages);
});

test("amounts", () => {
  for (const [size, wanted] of amounts) assert.equal(amount(size), wanted);
});

test("what is said", () => {
  const { start, settings } = races[0];
  assert.equal(summary(start), "Not started. Ring and tree will all-reduce the same vector.");
  const first = step(start, settings[0]);
  assert.equal(summary(first), "Race 1, 8 workers, 1 MiB. Ring: 1 of 112 messages. Tree, 4 chunks: 0 of 56 messages.");
  const end = finish(start, settings[0]);
  assert.ok(over(end));
  assert.match(summary(end), /^Race 1, 8 workers, 1 MiB\. Ring: done after 323\.5 µs, the busiest worker sent 1\.75 MiB\. Tree, 4 chunks: done after \d+\.\d µs, the busiest worker sent 3 MiB\. The ring is \d\.\d\d times as fast\.$/);
});
