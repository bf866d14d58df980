import assert from "node:assert/strict";
import { test } from "node:test";
import { MOST_CORNERS, type Point, regionOf, simplified } from "./polygon";

const circle = (steps: number, radius: number): Point[] =>
  Array.from({ length: steps }, (_, step) => {
    const angle = (2 * Math.PI * step) / steps;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });

test("points on a line are left out, and corners stay", () => {
  const line: Point[] = [
    [0, 0],
    [1, 0.01],
    [2, 0],
    [2, 1],
    [2.01, 2],
    [2, 3],
  ];
  assert.deepEqual(simplified(line, 0.1), [
    [0, 0],
    [2, 0],
    [2, 3],
  ]);
  assert.deepEqual(simplified(line, 0), line);
});

test("no point is further from the simplified line than the tolerance", () => {
  const line = Array.from({ length: 400 }, (_, x): Point => [x, 40 * Math.sin(x / 9) + 3 * Math.sin(x * 1.7)]);
  const kept = simplified(line, 2);
  assert.ok(kept.length < line.length / 2);
  for (const [x, y] of line) {
    const next = kept.findIndex(([right]) => right >= x);
    const [[ax, ay], [bx, by]] = [kept[Math.max(0, next - 1)]!, kept[next]!];
    const [dx, dy] = [bx - ax, by - ay];
    assert.ok(next === 0 || Math.abs(dy * (x - ax) - dx * (y - ay)) / Math.hypot(dx, dy) <= 2 + 1e-9);
  }
});

test("a region has at most so many corners, however long its line is", () => {
  const region = regionOf(circle(100_000, 1e6), 0.001)!;
  assert.ok(region.length <= MOST_CORNERS && region.length > 20);
});

test("a click, a line and nothing are no regions", () => {
  for (const line of [
    [],
    [[1, 1]],
    [
      [1, 1],
      [1, 1],
      [1, 1],
    ],
    [
      [0, 0],
      [5, 0],
      [9, 0],
    ],
  ] as Point[][])
    assert.equal(regionOf(line, 1), null);
});
