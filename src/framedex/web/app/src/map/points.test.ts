import assert from "node:assert/strict";
import { test } from "node:test";
import { keptPoints } from "./mask";
import { LEAST_POINTS, nextPace } from "./pace";
import { colourTable, nameColours, rampColour } from "./palette";
import { fromSquare, parseColours, readPoints, toSquare } from "./points";

const BOUNDS = { left: -30, lower: -20, right: 30, upper: 40 };

function bodyOf(places: number[], positions: number[]): Uint8Array {
  const count = positions.length;
  const body = new Uint8Array(64 + 8 * count);
  const view = new DataView(body.buffer);
  body.set(new TextEncoder().encode("FDXMAP01"));
  view.setUint32(8, count, true);
  view.setUint32(12, 99, true);
  [BOUNDS.left, BOUNDS.lower, BOUNDS.right, BOUNDS.upper].forEach((value, index) => {
    view.setFloat64(16 + 8 * index, value, true);
  });
  new Uint16Array(body.buffer, 64, 2 * count).set(places);
  positions.forEach((value, index) => {
    view.setUint32(64 + 4 * count + 4 * index, value, true);
  });
  return body;
}

const streamOf = (body: Uint8Array, size: number): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (let at = 0; at < body.length; at += size) controller.enqueue(body.slice(at, at + size));
      controller.close();
    },
  });

test("points are the same however their bytes are cut, and are there as they come", async () => {
  const body = bodyOf([1, 2, 3, 4, 5, 65_535], [7, 0, 98]);
  for (const size of [1, 3, 64, 65, 1000]) {
    const loaded: number[] = [];
    const points = await readPoints(streamOf(body, size), (found, n) => {
      loaded.push(n);
      assert.equal(found.count, 3);
    });
    assert.deepEqual([points.count, points.total, points.bounds], [3, 99, BOUNDS]);
    assert.deepEqual([...points.places], [1, 2, 3, 4, 5, 65_535]);
    assert.deepEqual([...points.positions], [7, 0, 98]);
    assert.equal(loaded.at(-1), 3);
    assert.deepEqual(
      loaded,
      loaded.toSorted((one, other) => one - other),
    );
  }
});

test("a map without points is one", async () => {
  assert.equal((await readPoints(streamOf(bodyOf([], []), 10), () => {})).count, 0);
});

test("bytes that break off, and others, are errors", async () => {
  const body = bodyOf([1, 2], [3]);
  await assert.rejects(
    readPoints(streamOf(body.slice(0, 70), 9), () => {}),
    /did not all come/,
  );
  await assert.rejects(
    readPoints(streamOf(body.slice(0, 20), 9), () => {}),
    /did not all come/,
  );
  await assert.rejects(
    readPoints(streamOf(new Uint8Array(80), 9), () => {}),
    /no points of a map/,
  );
});

test("coordinates of the map and of its square are each other's, to a step of 16 bits", () => {
  for (const [x, y] of [
    [0, 0],
    [0.123456, 0.9],
    [1, 1],
  ] as const) {
    const [back, up] = toSquare(BOUNDS, ...fromSquare(BOUNDS, x, y));
    assert.ok(Math.abs(back - x) < 1 / 65_535 && Math.abs(up - y) < 1 / 65_535);
  }
});

test("colours have their meaning and a code for each point", () => {
  const text = new TextEncoder().encode('{"names":[["dog",2]],"low":null,"high":null}');
  const body = new Uint8Array(4 + text.length + 3);
  new DataView(body.buffer).setUint32(0, text.length, true);
  body.set(text, 4);
  body.set([1, 255, 1], 4 + text.length);
  const found = parseColours(body.buffer);
  assert.deepEqual(
    [found.names, [...found.codes], found.hasOther, found.hasNone],
    [[["dog", 2]], [1, 255, 1], true, false],
  );
});

test("a filter keeps the points of the rows that have a bit", () => {
  const bits = Uint8Array.from([0b0000_0101, 0b1000_0000]);
  assert.deepEqual([...keptPoints(bits, Uint32Array.from([0, 1, 2, 15, 14, 200]))], [1, 0, 1, 1, 0, 0]);
});

test("the pace follows the time of frames, within its limits", () => {
  assert.ok(nextPace(400_000, 200, 1_000_000) < 400_000);
  assert.ok(nextPace(400_000, 17, 1_000_000) > 400_000);
  assert.equal(nextPace(400_000, 40, 1_000_000), 400_000);
  assert.equal(nextPace(60_000, 5_000, 1_000_000), LEAST_POINTS);
  assert.equal(nextPace(900_000, 1, 1_000_000), 1_000_000);
  assert.equal(nextPace(100_000, 17, 10), LEAST_POINTS);
});

const luminance = (colour: readonly number[]): number => {
  const [red, green, blue] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
};

test("colours of names differ, and stand out from the ground", () => {
  for (const [theme, ground] of [
    ["light", 1],
    ["dark", luminance([21, 24, 28])],
  ] as const) {
    const colours = nameColours(theme);
    assert.equal(new Set(colours.map(String)).size, 24);
    for (const colour of colours) {
      const [light, dark] = [luminance(colour), ground].sort((one, other) => other - one);
      assert.ok((light! + 0.05) / (dark! + 0.05) > 2.4, `${colour} on ${theme}`);
    }
  }
});

test("a ramp of numbers changes its lightness in one direction", () => {
  for (const [theme, sign] of [
    ["light", -1],
    ["dark", 1],
  ] as const) {
    const steps = Array.from({ length: 30 }, (_, step) => sign * luminance(rampColour(theme, step / 29)));
    assert.deepEqual(
      steps,
      steps.toSorted((one, other) => one - other),
    );
  }
});

test("a table has a colour for each code", () => {
  for (const kind of ["plain", "names", "numbers"] as const) {
    const table = colourTable(kind, "light");
    assert.equal(table.length, 1024);
    assert.ok(table.every((value, index) => index % 4 !== 3 || value === 255));
  }
});
