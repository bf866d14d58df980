/** Where labels are shown, so that none covers another one. */
import type { Size } from "./camera";

export interface Label {
  /** The middle of the label, in pixels. */
  x: number;
  y: number;
  width: number;
  height: number;
}

const GAP = 4;

/** Return the positions in a list of the labels that are shown: each that covers none of those before, and is in view. */
export function placed(labels: readonly Label[], view: Size, most: number): number[] {
  const found: number[] = [];
  const shown: Label[] = [];
  for (const [index, label] of labels.entries()) {
    if (found.length >= most) break;
    const isInView = label.x >= 0 && label.y >= 0 && label.x <= view.width && label.y <= view.height;
    if (!isInView || shown.some((other) => overlap(label, other))) continue;
    shown.push(label);
    found.push(index);
  }
  return found;
}

function overlap(one: Label, other: Label): boolean {
  return (
    Math.abs(one.x - other.x) < (one.width + other.width) / 2 + GAP &&
    Math.abs(one.y - other.y) < (one.height + other.height) / 2 + GAP
  );
}
