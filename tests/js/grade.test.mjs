// node --test tests/js: grading on the shared vectors. Questions come as JSON from the test that starts this.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
// As a page gets it: a module from a data URL.
const source = encodeURIComponent(read("../../helpers/widgets/static/grade.js"));
const { grade } = await import(`data:text/javascript,${source}`);

const questions = new Map(JSON.parse(readFileSync(process.env.QUESTIONS)).map((q) => [q.id, q]));
const vectors = JSON.parse(read("vectors.json"));

for (const { id, answer, problem, says, ...wanted } of vectors) {
  test(`${id}: ${JSON.stringify(answer)}`, () => {
    const { notes, problem: refused, ...got } = grade(questions.get(id), answer);
    if (problem) return assert.ok(refused?.includes(problem), `${refused}`);
    assert.deepEqual(got, wanted);
    if (says) assert.ok(notes.some((note) => note.text.includes(says)), JSON.stringify(notes));
  });
}

test("the answer is not changed by grading", () => {
  const answer = Object.freeze(["The messages of an all-reduce"]);
  grade(questions.get("growing"), answer);
});
