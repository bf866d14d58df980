/** Settings of this browser: theme, size of images, boxes, the details. */

import { effect, type Signal, signal } from "@preact/signals";
import { showTheme } from "#host";

/** Return a signal whose value this browser keeps. */
export function kept<T extends string | number | boolean>(name: string, initial: T): Signal<T> {
  const key = `framedex.${name}`;
  const found = signal<T>(read(key, initial));
  effect(() => {
    const value = found.value;
    try {
      localStorage.setItem(key, JSON.stringify(value));
    } catch {
      // storage is off or full: the value holds until the page is closed
    }
  });
  return found;
}

function read<T>(key: string, initial: T): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? "null");
    return typeof value === typeof initial ? (value as T) : initial;
  } catch {
    return initial;
  }
}

export const TILE_SIZES = [96, 144, 192, 272, 384] as const;
export const theme = kept<string>("theme", "system");
export const tileSize = kept<number>("tile-size", 192);
export const showsBoxes = kept<boolean>("boxes", false);
export const showsInspector = kept<boolean>("inspector", true);
export const fillsTiles = kept<boolean>("fill-tiles", false);

/** Put the theme on the page. */
export function startTheme(): void {
  effect(() => showTheme(theme.value));
}

/** Make images of the grid larger or smaller by some steps. */
export function changeTileSize(steps: number): void {
  const index = TILE_SIZES.findIndex((each) => each >= tileSize.value);
  const next = TILE_SIZES[Math.min(Math.max(0, index + steps), TILE_SIZES.length - 1)];
  if (next !== undefined) tileSize.value = next;
}
