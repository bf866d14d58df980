import assert from "node:assert/strict";
import { test } from "node:test";
import {
  between,
  type Camera,
  diameter,
  FITTED,
  inView,
  levelOf,
  limited,
  MOST_ZOOM,
  panned,
  toMap,
  toScreen,
  zoomed,
} from "./camera";

const SIZE = { width: 800, height: 600 };
const CAMERA: Camera = { x: 0.3, y: 0.6, zoom: 2.5 };
const near = (found: readonly number[], wanted: readonly number[], tolerance = 1e-9): void =>
  found.forEach((value, index) => {
    assert.ok(Math.abs(value - wanted[index]!) < tolerance, `${found} is not ${wanted}`);
  });

test("a place of the map and of the screen are each other's", () => {
  const places: [number, number][] = [
    [0, 0],
    [0.3, 0.6],
    [1, 0.25],
  ];
  for (const place of places) near(toMap(CAMERA, SIZE, ...toScreen(CAMERA, SIZE, ...place)), place);
  near(toScreen(CAMERA, SIZE, CAMERA.x, CAMERA.y), [400, 300]);
  assert.ok(toScreen(CAMERA, SIZE, 0.3, 0.7)[1] < 300, "y points upwards");
});

test("all of the map is in view at first", () => {
  const { left, lower, right, upper } = inView(FITTED, SIZE);
  assert.ok(left < 0 && lower < 0 && right > 1 && upper > 1);
});

test("zoom keeps the place below the pointer", () => {
  const [x, y] = toMap(CAMERA, SIZE, 120, 450);
  for (const steps of [1, -1.5, 0.25])
    near(toScreen(zoomed(CAMERA, SIZE, steps, 120, 450), SIZE, x, y), [120, 450], 1e-6);
});

test("a pan moves places with the pointer", () => {
  const before = toScreen(CAMERA, SIZE, 0.31, 0.61);
  near(toScreen(panned(CAMERA, SIZE, 15, -40), SIZE, 0.31, 0.61), [before[0] + 15, before[1] - 40]);
});

test("a camera stays within its limits, whatever an address says", () => {
  assert.deepEqual(limited({ x: -3, y: 7, zoom: 99 }), { x: 0, y: 1, zoom: MOST_ZOOM });
  assert.deepEqual(limited({ x: Number.NaN, y: Number.POSITIVE_INFINITY, zoom: Number.NaN }), { x: 0, y: 0, zoom: -1 });
});

test("a move begins and ends at its cameras, and its middle moves straight", () => {
  const to: Camera = { x: 0.8, y: 0.2, zoom: 5 };
  near(Object.values(between(CAMERA, to, 0)), Object.values(CAMERA));
  near(Object.values(between(CAMERA, to, 1)), Object.values(to));
  near(Object.values(between(CAMERA, { ...to, zoom: 2.5 }, 0.5)), [0.55, 0.4, 2.5]);
});

test("names are those of finer clusters the nearer the map is", () => {
  const levels = [-1, 0, 1, 1.3, 2.6, 3.9, 5, 8].map(levelOf);
  assert.deepEqual(levels, [4, 4, 4, 3, 2, 1, 0, 0]);
});

test("points are larger for fewer of them, and near, within limits", () => {
  assert.ok(diameter(FITTED, SIZE, 1_000) > diameter(FITTED, SIZE, 100_000));
  assert.ok(diameter(CAMERA, SIZE, 100_000) > diameter(FITTED, SIZE, 100_000));
  for (const count of [0, 1, 10_000_000]) {
    const found = diameter({ ...FITTED, zoom: 8 }, SIZE, count);
    assert.ok(found >= 1.4 && found <= 14);
  }
});
