import assert from "node:assert/strict";
import { test } from "node:test";
import { Queue } from "./queue";

/** A queue of numbers by parts, and the numbers that the server has. */
function numbers(open: number[], part = 2) {
  const read = async (offset: number) => ({
    items: open.slice(offset, offset + part),
    hasMore: offset + part < open.length,
  });
  return new Queue(read, String);
}

test("an item that was decided on is shown again after an undo", async () => {
  const open = [1, 2, 3];
  const queue = numbers(open, 3);
  await queue.load();
  queue.move(1);
  await queue.take(2, async () => open.splice(1, 1), true);
  assert.equal(queue.current, 3);
  open.splice(1, 0, 2);
  await queue.load();
  assert.equal(queue.current, 2);
});

test("what is shown stays when items before it are gone", async () => {
  const open = [1, 2, 3];
  const queue = numbers(open);
  await queue.load();
  queue.move(1);
  open.shift();
  await queue.load();
  assert.equal(queue.current, 2);
});

test("a place beyond the first part is kept when the queue is read again", async () => {
  const queue = numbers([1, 2, 3, 4, 5]);
  await queue.load();
  for (let step = 0; step < 3; step++) {
    queue.move(1);
    await new Promise((done) => setTimeout(done));
  }
  assert.equal(queue.current, 4);
  await queue.load();
  assert.equal(queue.current, 4);
});
