/** Colours of points: tables of 256 colours for the codes that the service sends. */

export type Rgb = readonly [number, number, number];
export type Theme = "light" | "dark";

/** The code of values without a colour of their own, and the most values that have one. */
export const OTHER = 255;
const LAST_NUMBER = 254;
const MOST_NAMES = 24;

/** Colours that people with any vision can tell apart (Okabe and Ito), as light as each ground allows. */
const FIRST: Record<Theme, readonly string[]> = {
  light: ["#0072b2", "#d98c00", "#009e73", "#cc5fa0", "#3fa7e0", "#d0470a", "#a89a00"],
  dark: ["#3d9be0", "#e69f00", "#1bb58a", "#dd8cb9", "#7cc8f3", "#ee7733", "#f0e442"],
};
/** Ramps whose lightness grows evenly away from the ground. */
const RAMPS: Record<Theme, readonly string[]> = {
  light: ["#b5d3e6", "#6fa8d0", "#3f6fb5", "#4b328a", "#33104a"],
  dark: ["#2d4a78", "#3c7ca6", "#55b0a3", "#b3d97b", "#fff3a6"],
};
const NO_VALUE: Record<Theme, string> = { light: "#c3cad1", dark: "#48525d" };
const OTHER_VALUES: Record<Theme, string> = { light: "#8b96a1", dark: "#7d8995" };
/** The colour of all points where none is chosen. */
const PLAIN: Record<Theme, string> = { light: "#2f78b8", dark: "#6fb1ee" };
const GOLDEN_ANGLE = 137.508;

export function rgb(text: string): Rgb {
  const value = Number.parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Return a colour of the OKLCH space (Ottosson), brought into the range of a screen. */
export function oklch(lightness: number, chroma: number, hue: number): Rgb {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const [red, green, blue] = linear.map((value) => {
    const held = Math.min(Math.max(value, 0), 1);
    return Math.round(255 * (held <= 0.0031308 ? 12.92 * held : 1.055 * held ** (1 / 2.4) - 0.055));
  });
  return [red!, green!, blue!];
}

/** Return the colours of names by their number, from 0. */
export function nameColours(theme: Theme): Rgb[] {
  const found = FIRST[theme].map(rgb);
  for (let index = found.length; index < MOST_NAMES; index++) {
    const step = index - FIRST[theme].length;
    const lightness = (theme === "light" ? 0.46 : 0.62) + 0.07 * (step % 3);
    found.push(oklch(lightness, 0.11, 20 + step * GOLDEN_ANGLE));
  }
  return found;
}

/** Return the colour of a share of the way from the smallest to the largest number. */
export function rampColour(theme: Theme, share: number): Rgb {
  const stops = RAMPS[theme].map(rgb);
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const index = Math.min(Math.floor(place), stops.length - 2);
  const [from, to] = [stops[index]!, stops[index + 1]!];
  return from.map((value, part) => Math.round(value + (to[part]! - value) * (place - index))) as unknown as Rgb;
}

export const noColour = (theme: Theme): Rgb => rgb(NO_VALUE[theme]);
export const otherColour = (theme: Theme): Rgb => rgb(OTHER_VALUES[theme]);
export const plainColour = (theme: Theme): Rgb => rgb(PLAIN[theme]);

/** Return the table of colours by code: 256 times red, green and blue. */
export function colourTable(kind: "plain" | "names" | "numbers", theme: Theme): Uint8Array {
  const table = new Uint8Array(256 * 4).fill(255);
  const put = (code: number, [red, green, blue]: Rgb): void => table.set([red, green, blue], code * 4);
  const names = nameColours(theme);
  for (let code = 0; code < 256; code++) {
    if (kind === "plain") put(code, plainColour(theme));
    else if (code === 0) put(code, noColour(theme));
    else if (kind === "numbers") put(code, rampColour(theme, (code - 1) / (LAST_NUMBER - 1)));
    else put(code, names[code - 1] ?? otherColour(theme));
  }
  return table;
}

export const css = ([red, green, blue]: Rgb): string => `rgb(${red} ${green} ${blue})`;
