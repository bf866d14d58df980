const LETTERS = "abcdefghijkmnpqrstuvwxyz23456789";

/** Return a random password of four groups of four letters and digits that are not mistaken for each other: 80 bits. */
export function randomPassword(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const text = [...bytes].map((byte) => LETTERS[byte % LETTERS.length]).join("");
  return text.replace(/(.{4})(?=.)/g, "$1-");
}
