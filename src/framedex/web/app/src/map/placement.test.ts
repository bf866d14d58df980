import assert from "node:assert/strict";
import { test } from "node:test";
import { placed } from "./placement";

const VIEW = { width: 400, height: 300 };
const label = (x: number, y: number, width = 80) => ({ x, y, width, height: 20 });

test("a label that would cover one before it is left out", () => {
  assert.deepEqual(placed([label(100, 100), label(150, 110), label(100, 160), label(300, 100)], VIEW, 10), [0, 2, 3]);
});

test("no two of many labels overlap, and all are in view", () => {
  let seed = 1;
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const labels = Array.from({ length: 300 }, () => label(random() * 500 - 50, random() * 400 - 50, 30 + random() * 90));
  const shown = placed(labels, VIEW, 100).map((index) => labels[index]!);
  assert.ok(shown.length > 5);
  for (const [index, one] of shown.entries()) {
    assert.ok(one.x >= 0 && one.x <= 400 && one.y >= 0 && one.y <= 300);
    for (const other of shown.slice(index + 1)) {
      const apart = Math.abs(one.x - other.x) >= (one.width + other.width) / 2 || Math.abs(one.y - other.y) >= 20;
      assert.ok(apart);
    }
  }
});

test("labels cover nothing that is taken, and are not cut off", () => {
  const labels = [label(100, 100), label(395, 100), label(220, 100)];
  assert.deepEqual(placed(labels, VIEW, 10, [label(120, 110)]), [2]);
});

test("there are at most so many labels", () => {
  assert.equal(placed([label(50, 50), label(200, 50), label(50, 200)], VIEW, 2).length, 2);
});
