import assert from "node:assert/strict";
import { test } from "node:test";
import { Kernel } from "./kernel";

test("a closed view says nothing after its last message", async () => {
  const sent: string[] = [];
  const send = (content: { items: { do: string }[] }): void => {
    sent.push(...content.items.map((item) => item.do));
  };
  const closing = new AbortController();
  const kernel = new Kernel({ on: () => {}, off: () => {}, send } as never, closing.signal);
  const before = kernel.request("/before", {});
  await Promise.resolve();
  closing.abort();
  const after = kernel.request("/after", {});
  const end = kernel.stream(
    "/after",
    () => {},
    () => {},
  );
  end();
  await assert.rejects(before, /closed/);
  await assert.rejects(after, /closed/);
  assert.deepEqual(sent, ["request", "close"]);
});
