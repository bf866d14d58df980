import assert from "node:assert/strict";
import { test } from "node:test";
import { keyText } from "./dispatcher";
import { KEYS, keyNames, permissionOf, permissionOfHint } from "./table";

test("no key of a scope means two things", () => {
  const found = KEYS.flatMap((key) => key.keys.map((each) => `${key.scope} ${each}`));
  assert.deepEqual(
    found.filter((each, index) => found.indexOf(each) !== index),
    [],
  );
});

test("no key of a sequence is a key of its own", () => {
  const first = new Set(
    KEYS.flatMap((key) => key.keys)
      .filter((each) => each.includes(" "))
      .map((each) => each.split(" ")[0]),
  );
  const alone = KEYS.flatMap((key) => key.keys).filter((each) => first.has(each));
  assert.deepEqual(alone, []);
});

test("ids are there once in a scope", () => {
  const found = KEYS.map((key) => `${key.scope} ${key.id}`);
  assert.equal(new Set(found).size, found.length);
});

test("keys have names", () => {
  const undo = KEYS.find((key) => key.id === "redo")!;
  assert.deepEqual(keyNames(undo), ["Ctrl Shift Z"]);
  assert.deepEqual(keyNames(KEYS.find((key) => key.id === "larger")!), ["+", "="]);
  assert.deepEqual(keyNames(KEYS.find((key) => key.id === "go.tasks")!), ["G T"]);
});

test("events have the text of the table", () => {
  const event = { key: "Z", ctrlKey: false, metaKey: true, shiftKey: true, altKey: false };
  assert.equal(keyText(event), "Ctrl+Shift+z");
  assert.equal(keyText({ ...event, key: "?", metaKey: false }), "?");
  assert.equal(keyText({ ...event, key: " ", metaKey: false, shiftKey: false }), "Space");
  assert.equal(keyText({ ...event, key: "ArrowUp", metaKey: false }), "Shift+ArrowUp");
});

test("buttons need what their keys need", () => {
  assert.equal(permissionOfHint("T", "pictures"), "dataset.edit");
  assert.equal(permissionOfHint("2", "labels"), "dataset.edit");
  assert.equal(permissionOfHint("Enter", "pictures"), null);
  assert.equal(permissionOfHint("Enter", "cleanup"), "dataset.edit");
});

test("keys that change something need a permission", () => {
  const changing =
    /^(accept|reject|tag|label$|basket|caption|undo|redo|choose|other|ambiguous|apply|keep\.all|not\.two)/;
  const open = KEYS.filter((key) => changing.test(key.id) && permissionOf(key) === null);
  assert.deepEqual(open, []);
});
