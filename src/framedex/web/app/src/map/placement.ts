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

/**
 * Return the positions in a list of the labels that are shown: each that covers none of those before, and is in view.
 *
 * @param taken what no label covers.
 */
export function placed(labels: readonly Label[], view: Size, most: number, taken: readonly Label[] = []): number[] {
  const found: number[] = [];
  const shown = [...taken];
  for (const [index, label] of labels.entries()) {
    if (found.length >= most) break;
    const [besides, above] = [label.width / 2, label.height / 2];
    const isInView =
      label.x >= besides && label.y >= above && label.x <= view.width - besides && label.y <= view.height - above;
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
