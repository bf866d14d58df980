import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOf, leavesOut, python, quoted, type Selected } from "./code";

const PETS: Selected = {
  url: "http://127.0.0.1:8765",
  dataset: "pets",
  datasetId: "1",
  query: {},
  needsLogin: false,
};

test("values are those of Python", () => {
  assert.equal(python([{ a: true, 'b"': null }, 1.5, "é\n'"]), `[{"a": True, "b\\"": None}, 1.5, "é\\n'"]`);
});

test("words of a shell hold any text", () => {
  assert.equal(quoted("pets"), "pets");
  assert.equal(quoted("it's $HOME"), "'it'\\''s $HOME'");
  assert.equal(quoted("-x"), "'-x'");
  assert.equal(quoted(""), "''");
});

test("a query is a chain of calls", () => {
  const query = {
    vql: [{ labels: { op: "is", value: "dog" } }],
    search: { similar: "7", limit: 10 },
    region: { x: 1, y: 2, width: 3, height: 4 },
    sort: { column: "blur", descending: true },
  };
  assert.match(
    codeOf("python", { ...PETS, query }),
    /ds\.view\.where\(\[.*\]\)\.similar\("7", 10, bounding_box=\(1, 2, 3, 4\)\)\.sort_by\("blur", descending=True\)/,
  );
  assert.equal(
    codeOf("cli", { ...PETS, query }),
    `framedex similar pets 7 --box 1,2,3,4 --limit 10 --vql '[{"labels":{"op":"is","value":"dog"}}]'`,
  );
  assert.equal(codeOf("vql", { ...PETS, query }), '[{"labels":{"op":"is","value":"dog"}}]');
  assert.deepEqual(
    [leavesOut("vql", query), leavesOut("cli", query), leavesOut("curl", query)],
    ["search", "order", null],
  );
});

test("credentials are named where somebody logs in", () => {
  assert.match(codeOf("python", { ...PETS, needsLogin: true }), /Client\("http:\/\/127.0.0.1:8765", key, secret\)/);
  assert.match(codeOf("curl", { ...PETS, needsLogin: true }), /Authorization: Bearer \$TOKEN/);
});
