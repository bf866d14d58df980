/** How many points are drawn in a frame, so that the map moves evenly on any machine. */

export const LEAST_POINTS = 50_000;
const SLOW_MS = 60;
const FAST_MS = 25;
const AIM_MS = 45;

/** Return the number of points for the next frame, by the time that the last one took. */
export function nextPace(points: number, ms: number, all: number): number {
  let next = points;
  if (ms > SLOW_MS) next = points * Math.max(0.4, AIM_MS / ms);
  else if (ms < FAST_MS) next = points * 1.6;
  return Math.round(Math.min(Math.max(next, LEAST_POINTS), Math.max(all, LEAST_POINTS)));
}
