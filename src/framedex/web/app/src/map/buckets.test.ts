import assert from "node:assert/strict";
import { test } from "node:test";
import { Buckets } from "./buckets";

const STEPS = 65_535;
let seed = 7;
function random(): number {
  seed = (seed * 16_807) % 2_147_483_647;
  return seed / 2_147_483_647;
}
const randomPlaces = (count: number): Uint16Array => Uint16Array.from({ length: 2 * count }, () => random() * STEPS);
const all = (): boolean => true;

test("the nearest point is that of a search through all", () => {
  const places = randomPlaces(3_000);
  const buckets = new Buckets(places);
  const isKept = (index: number): boolean => index % 3 !== 0;
  for (let turn = 0; turn < 200; turn++) {
    const [x, y, reach] = [random() * 1.2 - 0.1, random() * 1.2 - 0.1, random() * 0.1];
    let [best, least] = [-1, reach * reach];
    for (let index = 0; index < 3_000; index++) {
      const away = (places[2 * index]! / STEPS - x) ** 2 + (places[2 * index + 1]! / STEPS - y) ** 2;
      if (isKept(index) && away < least) [best, least] = [index, away];
    }
    assert.equal(buckets.nearest(x, y, reach, isKept), best);
  }
});

test("a part of the map has the points of a search through all", () => {
  const places = randomPlaces(2_000);
  const buckets = new Buckets(places);
  const box = { left: 0.2, right: 0.45, lower: -0.5, upper: 0.3 };
  const found: number[] = [];
  buckets.each(box, (index) => found.push(index) > 0);
  const expected = Array.from({ length: 2_000 }, (_, index) => index).filter((index) => {
    const [x, y] = [places[2 * index]! / STEPS, places[2 * index + 1]! / STEPS];
    return x >= 0.2 && x <= 0.45 && y <= 0.3;
  });
  assert.deepEqual(
    found.sort((one, other) => one - other),
    expected,
  );
});

test("tiles are one point a cell, of those that are kept, and none of too many points", () => {
  const buckets = new Buckets(Uint16Array.from([0, 0, 100, 100, 30_000, 30_000, STEPS, STEPS]));
  const box = { left: 0, right: 1, lower: 0, upper: 1 };
  const indices = (isKept: (index: number) => boolean) =>
    buckets.tiles(box, 0.1, 10, 300, isKept)?.map(({ index }) => index);
  assert.deepEqual(indices(all), [0, 2, 3]);
  assert.deepEqual(
    indices((index) => index > 0 && index < 3),
    [1, 2],
  );
  assert.equal(buckets.tiles(box, 0.1, 3, 300, all), null);
  assert.equal(buckets.tiles(box, 0.1, 10, 2, all)?.length, 2);
});

test("an index can be empty, or all of it at one place", () => {
  assert.equal(new Buckets(new Uint16Array(0)).nearest(0.5, 0.5, 1, all), -1);
  const same = new Buckets(new Uint16Array(2_000).fill(9));
  assert.equal(same.tiles({ left: 0, right: 1, lower: 0, upper: 1 }, 0.1, 2_000, 300, all)?.length, 1);
});
