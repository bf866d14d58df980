/** Regions that are drawn by hand. */

export type Point = readonly [number, number];
/** The most corners of a region in a filter. */
export const MOST_CORNERS = 500;

/** Return the distance of a point from a line between two others. */
function distance([x, y]: Point, [ax, ay]: Point, [bx, by]: Point): number {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const along = length === 0 ? 0 : Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / length, 0), 1);
  return Math.hypot(x - ax - along * dx, y - ay - along * dy);
}

/** Return the points of a line that are needed so that no other is further from it than a tolerance (Douglas, Peucker). */
export function simplified(line: readonly Point[], tolerance: number): Point[] {
  if (line.length < 3) return [...line];
  const isKept = new Uint8Array(line.length);
  isKept[0] = isKept[line.length - 1] = 1;
  const open: [number, number][] = [[0, line.length - 1]];
  for (let part = open.pop(); part; part = open.pop()) {
    const [first, last] = part;
    let [farthest, most] = [0, tolerance];
    for (let index = first + 1; index < last; index++) {
      const found = distance(line[index]!, line[first]!, line[last]!);
      if (found > most) [farthest, most] = [index, found];
    }
    if (farthest) {
      isKept[farthest] = 1;
      open.push([first, farthest], [farthest, last]);
    }
  }
  return line.filter((_, index) => isKept[index]);
}

/** Return the corners of a region that was drawn, at most {@link MOST_CORNERS}; null if it encloses nothing. */
export function regionOf(line: readonly Point[], tolerance: number): Point[] | null {
  let corners = simplified(line, tolerance);
  for (let next = tolerance * 2; corners.length > MOST_CORNERS; next *= 2) corners = simplified(line, next);
  return corners.length >= 3 && area(corners) > tolerance * tolerance ? corners : null;
}

function area(corners: readonly Point[]): number {
  let [least, most] = [corners[0]!, corners[0]!];
  for (const [x, y] of corners) {
    least = [Math.min(least[0], x), Math.min(least[1], y)];
    most = [Math.max(most[0], x), Math.max(most[1], y)];
  }
  return (most[0] - least[0]) * (most[1] - least[1]);
}
