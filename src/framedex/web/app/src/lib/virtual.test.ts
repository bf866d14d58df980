import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualScroll } from "./virtual";

/** A scroller as a browser has it: positions are whole pixels within its content. */
class Scroller {
  top = 0;
  constructor(
    readonly scroll: VirtualScroll,
    readonly view: number,
  ) {}
  set(top: number): void {
    this.top = Math.round(Math.min(Math.max(0, top), Math.max(0, this.scroll.height - this.view)));
    const next = this.scroll.scrolled(this.top);
    if (next !== null) this.set(next);
  }
}

test("rows that fit move pixel by pixel", () => {
  const scroll = new VirtualScroll();
  scroll.resize(5_000, 800);
  const scroller = new Scroller(scroll, 800);
  scroller.set(300);
  assert.equal(scroll.y, 300);
  scroller.set(9_999);
  assert.equal(scroll.y, 4_200);
});

test("steps move the same number of pixels through all rows, and reach both ends", () => {
  const scroll = new VirtualScroll(60_000);
  scroll.resize(17_800_000, 800);
  const scroller = new Scroller(scroll, 800);
  for (let n = 1; n <= 260; n++) {
    scroller.set(scroller.top + 1_500);
    assert.ok(Math.abs(scroll.y - 1_500 * n) < 3 * n, `after ${n} steps at ${scroll.y}`);
  }
  scroller.set(59_200);
  assert.equal(scroll.y, scroll.end);
  for (let n = 0; n < 60; n++) scroller.set(scroller.top - 1_500);
  assert.ok(Math.abs(scroll.end - scroll.y - 90_000) < 200);
  scroller.set(0);
  assert.equal(scroll.y, 0);
});

test("a long step moves in proportion", () => {
  const scroll = new VirtualScroll();
  scroll.resize(60_000_000, 1_000);
  const scroller = new Scroller(scroll, 1_000);
  scroller.set(3_000_000);
  assert.ok(Math.abs(scroll.y / scroll.end - 0.5) < 0.01);
});

test("a row can be put at the top, and stays where the scroller is", () => {
  const scroll = new VirtualScroll();
  scroll.resize(17_800_000, 800);
  const top = scroll.moveTo(9_000_000);
  assert.ok(top <= scroll.height - 800);
  assert.ok(Math.abs(scroll.place(9_000_000) - top) < 1e-6);
  assert.equal(scroll.scrolled(Math.round(top)), null);
  assert.equal(scroll.y, 9_000_000);
});
