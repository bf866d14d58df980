/** The points of a map as the service sends them; see `GET /dataset/{id}/map`. */
import type { Box } from "./camera";
import { OTHER } from "./palette";

export interface Points {
  /** The number of points, and that of all rows. */
  count: number;
  total: number;
  /** The square of the map in its own coordinates. */
  bounds: Box;
  /** x and y of each point: 0 to 65535 across the square. */
  places: Uint16Array;
  /** The position of each point among all rows in the order of ingestion, once all has come. */
  positions: Uint32Array;
}

const MAGIC = "FDXMAP01";
const HEADER_BYTES = 64;
const STEPS = 65_535;

/** Return what the first bytes say, with room for the points. */
function begin(head: Uint8Array): { points: Points; body: Uint8Array } {
  const view = new DataView(head.buffer, head.byteOffset, HEADER_BYTES);
  const magic = String.fromCharCode(...head.subarray(0, MAGIC.length));
  if (magic !== MAGIC) throw new Error(`these are no points of a map: they begin with ${JSON.stringify(magic)}`);
  const [count, total] = [view.getUint32(8, true), view.getUint32(12, true)];
  const [left, lower, right, upper] = [16, 24, 32, 40].map((at) => view.getFloat64(at, true)) as [
    number,
    number,
    number,
    number,
  ];
  const body = new Uint8Array(count * 8);
  const places = new Uint16Array(body.buffer, 0, count * 2);
  const positions = new Uint32Array(body.buffer, count * 4, count);
  return { points: { count, total, bounds: { left, lower, right, upper }, places, positions }, body };
}

/**
 * Read points as they come; those of any beginning are a fair sample of all.
 *
 * @param onLoaded called with the points, and the number of those whose places have come.
 */
export async function readPoints(
  stream: ReadableStream<Uint8Array>,
  onLoaded: (points: Points, loaded: number) => void,
): Promise<Points> {
  const reader = stream.getReader();
  const head = new Uint8Array(HEADER_BYTES);
  let begun: ReturnType<typeof begin> | null = null;
  let filled = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    let chunk = part.value;
    if (!begun) {
      const missing = chunk.subarray(0, HEADER_BYTES - filled);
      head.set(missing, filled);
      filled += missing.length;
      if (filled < HEADER_BYTES) continue;
      begun = begin(head);
      chunk = chunk.subarray(missing.length);
      filled = 0;
    }
    begun.body.set(chunk.subarray(0, begun.body.length - filled), filled);
    filled += chunk.length;
    onLoaded(begun.points, Math.min(Math.floor(filled / 4), begun.points.count));
  }
  if (!begun || filled < begun.body.length) throw new Error("the points of the map did not all come");
  return begun.points;
}

/** Return a place in the coordinates of the map as one within its square. */
export function toSquare({ left, lower, right, upper }: Box, x: number, y: number): [number, number] {
  return [(x - left) / (right - left), (y - lower) / (upper - lower)];
}

/** Return a place within the square in the coordinates of the map, as exact as needed. */
export function fromSquare({ left, lower, right, upper }: Box, x: number, y: number): [number, number] {
  const digits = Math.max(0, Math.ceil(Math.log10(STEPS / (right - left))));
  const rounded = (value: number): number => Number(value.toFixed(digits));
  return [rounded(left + x * (right - left)), rounded(lower + y * (upper - lower))];
}

export interface Colours {
  /** The most frequent values with their counts; none for numbers. */
  names: [string, number][];
  low: number | null;
  high: number | null;
  codes: Uint8Array;
  /** Whether any point has another value, or none. */
  hasOther: boolean;
  hasNone: boolean;
}

/** Return the colours of points; see `GET /dataset/{id}/map/colours`. */
export function parseColours(body: ArrayBuffer): Colours {
  const length = new DataView(body).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(body, 4, length));
  const codes = new Uint8Array(body, 4 + length);
  const meaning = JSON.parse(text) as Pick<Colours, "names" | "low" | "high">;
  return { ...meaning, codes, hasOther: codes.includes(OTHER), hasNone: codes.includes(0) };
}
