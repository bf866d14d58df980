/** The worker that knows where points are, and which of them a filter keeps. */
import { Buckets } from "./buckets";
import type { Answers, Question, Questions } from "./index";
import { keptPoints } from "./mask";

let buckets: Buckets | null = null;
let positions: Uint32Array = new Uint32Array(0);
let kept: Uint8Array | null = null;
const isKept = (index: number): boolean => kept === null || kept[index] === 1;

const HANDLERS: { [Name in Question]: (asked: Questions[Name]) => Answers[Name] } = {
  points: (asked) => {
    buckets = new Buckets(asked.places);
    positions = asked.positions;
    kept = null;
    return null;
  },
  mask: ({ bits }) => {
    kept = bits && keptPoints(new Uint8Array(bits), positions);
    return kept?.slice() ?? null;
  },
  nearest: ({ x, y, reach }) => {
    const index = buckets?.nearest(x, y, reach, isKept) ?? -1;
    return index < 0 ? null : { position: positions[index]!, x: buckets!.x(index), y: buckets!.y(index) };
  },
  tiles: ({ box, cell, mostPoints, mostTiles }) => {
    const found = buckets?.tiles(box, cell, mostPoints, mostTiles, isKept) ?? null;
    return found?.map(({ index, x, y }) => ({ position: positions[index]!, x, y })) ?? null;
  },
};

addEventListener("message", ({ data }: MessageEvent<{ id: number; name: Question; asked: never }>) => {
  const answer = HANDLERS[data.name](data.asked);
  postMessage({ id: data.id, answer }, { transfer: answer instanceof Uint8Array ? [answer.buffer] : [] });
});
