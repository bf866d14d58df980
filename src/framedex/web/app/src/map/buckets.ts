/** An index of points by small squares: which is nearest, and which lie in a part of the map. */
import type { Box } from "./camera";

const STEPS = 65_535;
const MOST_SIDE = 512;
const POINTS_OF_BUCKET = 4;
/** How far apart tiles are, in cells. */
const LEAST_APART = 0.85;
const NEIGHBOURS = [-1, 0, 1].flatMap((right) => [-1, 0, 1].map((up) => [right, up] as const));

export interface Tile {
  index: number;
  x: number;
  y: number;
}

export class Buckets {
  private readonly side: number;
  private readonly starts: Uint32Array;
  private readonly order: Uint32Array;

  constructor(private readonly places: Uint16Array) {
    const count = places.length / 2;
    this.side = Math.min(Math.max(1, Math.ceil(Math.sqrt(count / POINTS_OF_BUCKET))), MOST_SIDE);
    this.starts = new Uint32Array(this.side * this.side + 1);
    this.order = new Uint32Array(count);
    for (let index = 0; index < count; index++) this.starts[this.bucketOf(index) + 1]!++;
    for (let bucket = 0; bucket < this.side * this.side; bucket++) this.starts[bucket + 1]! += this.starts[bucket]!;
    const next = this.starts.slice();
    for (let index = 0; index < count; index++) this.order[next[this.bucketOf(index)]!++] = index;
  }

  private bucketOf(index: number): number {
    return this.line(this.places[2 * index + 1]! / STEPS) * this.side + this.line(this.places[2 * index]! / STEPS);
  }

  private line(value: number): number {
    return Math.min(Math.max(0, Math.floor(value * this.side)), this.side - 1);
  }

  x(index: number): number {
    return this.places[2 * index]! / STEPS;
  }

  y(index: number): number {
    return this.places[2 * index + 1]! / STEPS;
  }

  /** Call a function with each point of a part of the map, until it returns false. */
  each(box: Box, visit: (index: number) => boolean): void {
    const [first, last] = [this.line(box.left), this.line(box.right)];
    for (let row = this.line(box.lower); row <= this.line(box.upper); row++) {
      const end = this.starts[row * this.side + last + 1]!;
      for (let place = this.starts[row * this.side + first]!; place < end; place++) {
        const index = this.order[place]!;
        const [x, y] = [this.x(index), this.y(index)];
        if (x < box.left || x > box.right || y < box.lower || y > box.upper) continue;
        if (!visit(index)) return;
      }
    }
  }

  /** Return the point nearest to a place, at most so far away; -1 if there is none. */
  nearest(x: number, y: number, reach: number, isKept: (index: number) => boolean): number {
    let [found, least] = [-1, reach * reach];
    const box = { left: x - reach, right: x + reach, lower: y - reach, upper: y + reach };
    this.each(box, (index) => {
      const away = (this.x(index) - x) ** 2 + (this.y(index) - y) ** 2;
      if (away <= least && isKept(index)) [found, least] = [index, away];
      return true;
    });
    return found;
  }

  /**
   * Return one point for each cell of a part of the map, the first of its points, unless it is too near that of another
   * cell; null if the part has too many points.
   *
   * @param cell the side of a cell.
   * @param mostPoints the most points of the part.
   * @param mostTiles the most cells.
   */
  tiles(
    box: Box,
    cell: number,
    mostPoints: number,
    mostTiles: number,
    isKept: (index: number) => boolean,
  ): Tile[] | null {
    const best = new Map<string, number>();
    let count = 0;
    this.each(box, (index) => {
      if (!isKept(index)) return true;
      const name = `${Math.floor(this.x(index) / cell)} ${Math.floor(this.y(index) / cell)}`;
      best.set(name, Math.min(best.get(name) ?? index, index));
      return ++count <= mostPoints;
    });
    if (count > mostPoints) return null;
    const shown: Tile[] = [];
    const inCell = new Map<string, Tile>();
    for (const index of [...best.values()].sort((one, other) => one - other)) {
      if (shown.length >= mostTiles) break;
      const tile = { index, x: this.x(index), y: this.y(index) };
      const [column, row] = [Math.floor(tile.x / cell), Math.floor(tile.y / cell)];
      const isFree = NEIGHBOURS.every(([right, up]) => {
        const other = inCell.get(`${column + right} ${row + up}`);
        const apart = cell * LEAST_APART;
        return !other || Math.abs(other.x - tile.x) >= apart || Math.abs(other.y - tile.y) >= apart;
      });
      if (!isFree) continue;
      inCell.set(`${column} ${row}`, tile);
      shown.push(tile);
    }
    return shown;
  }
}
