/** Numbers, sizes and times in the words of the browser's locale. */

const whole = new Intl.NumberFormat();
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const when = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const since = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
  ["year", Number.POSITIVE_INFINITY],
];

export const count = (value: number): string => whole.format(value);
export const share = (value: number): string => percent.format(value);
export const date = (value: string | number): string => when.format(new Date(value));

/** Return a number with at most some significant digits. */
export function number(value: number, digits = 3): string {
  return new Intl.NumberFormat(undefined, { maximumSignificantDigits: digits }).format(value);
}

/** Return a number of bytes with its unit. */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  const format = { style: "unit", unit: UNITS[unit]!, unitDisplay: "narrow", maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(undefined, format).format(value);
}

/** Return how long ago a time was. */
export function ago(value: string, now = Date.now()): string {
  let distance = (new Date(value).getTime() - now) / 1000;
  for (const [unit, next] of STEPS) {
    if (Math.abs(distance) < next) return since.format(Math.round(distance), unit);
    distance /= next;
  }
  return date(value);
}

/** Return a time within a video, to the millisecond, for example `1:02.040`. */
export function time(seconds: number): string {
  const ms = Math.round(seconds * 1_000);
  const [minutes, rest] = [Math.floor(ms / 60_000), ms % 60_000];
  const text = `${String(Math.floor(rest / 1_000)).padStart(2, "0")}.${String(rest % 1_000).padStart(3, "0")}`;
  if (minutes < 60) return `${minutes}:${text}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${text}`;
}
