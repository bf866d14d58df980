/** Which points a filter keeps. */

/** Return 1 for each point whose row has a bit, the least significant of a byte first, and 0 for the others. */
export function keptPoints(bits: Uint8Array, positions: Uint32Array): Uint8Array {
  const kept = new Uint8Array(positions.length);
  for (let index = 0; index < positions.length; index++) {
    const position = positions[index]!;
    kept[index] = ((bits[position >> 3] ?? 0) >> (position & 7)) & 1;
  }
  return kept;
}
