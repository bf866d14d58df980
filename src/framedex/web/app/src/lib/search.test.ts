import assert from "node:assert/strict";
import { test } from "node:test";
import { balanced } from "./search";

test("quotation marks are in pairs", () => {
  for (const [text, sent] of [
    ['"red car"', '"red car"'],
    ["“red car” street", "“red car” street"],
    ['"red ca', "red ca"],
    ['nails of 5"', "nails of 5"],
    ['"red car" "stre', '"red car"  stre'],
    ["„rot", "rot"],
    ['"', '""'],
    ["it's", "it's"],
  ] as const)
    assert.equal(balanced(text), sent, text);
});
