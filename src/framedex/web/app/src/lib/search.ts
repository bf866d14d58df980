/** The text of a search, as people write it. */
const QUOTES = /["“”„]/g;

/**
 * Return a text in which each quotation mark has another one: the last of an odd number is taken as a space, since it
 * begins a phrase that is not finished, or stands for inches. A text of nothing else matches nothing.
 */
export function balanced(text: string): string {
  const places = [...text.matchAll(QUOTES)].map((match) => match.index);
  if (places.length % 2 === 0) return text;
  const last = places[places.length - 1]!;
  return `${text.slice(0, last)} ${text.slice(last + 1)}`.trim() || '""';
}
