import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, filterText, parseFilter } from "./vql";

test("elements have words", () => {
  assert.equal(describe({ labels: { op: "is", value: "dog" } }), "label is dog");
  assert.equal(describe({ not: { issues: { op: "issue", value: "blur" } } }), "not (issue is blur)");
  assert.equal(describe({ id: 3, size: { op: "ge", value: 640, of: "width" } }), "size ≥ 640 of width");
  assert.equal(
    describe({ ids: { op: "one_of", value: ["a", "b", "c", "d"] } }),
    "chosen images is one of a, b, c, … (4)",
  );
  const either = { any: [{ folder: { op: "starts", value: "2024" } }, { tags: { op: "is", value: "keep" } }] };
  assert.equal(describe(either), "folder starts with 2024 or tag is keep");
});

test("a filter that cannot be read is none", () => {
  assert.deepEqual(parseFilter("[{]"), []);
  assert.deepEqual(parseFilter('{"a":1}'), []);
  assert.deepEqual(parseFilter("[null, 3]"), []);
  assert.deepEqual(parseFilter(null), []);
});

test("a filter in an address comes back", () => {
  const filter = [{ labels: { op: "is", value: 'a "b" & c' } }];
  assert.deepEqual(parseFilter(filterText(filter)), filter);
  assert.equal(filterText([]), null);
});
