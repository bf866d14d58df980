/** The words of the source folders, which are loaded with the overview. */
const images = (n: number): string => `${n.toLocaleString()} ${n === 1 ? "image" : "images"}`;
const files = (n: number): string => `${n.toLocaleString()} ${n === 1 ? "file" : "files"}`;

export const sources = {
  title: "Files",
  lost: (source: string, n: number, reason: string) => `${images(n)} of ${source} cannot be found: ${reason}`,
  lostFiles: (source: string, n: number, reason: string) => `${files(n)} of ${source} cannot be found: ${reason}`,
  markLost: (n: number) => `Mark them as missing nevertheless (${files(n)})`,
  relocate: "Relocate",
  askAdmin: "An administrator can tell where the folder is now.",
  uploads: "The files of this dataset were uploaded and lie in the workspace.",
  missing: (n: number) => `${images(n)} marked as missing`,
  compare: "Compare with the folders",
  busy: "A comparison is running.",
  nothing: "The dataset is as its folders are.",
  differences: "What differs",
  kinds: {
    new: (n: number) => `${files(n)} new`,
    changed: (n: number) => `${files(n)} changed`,
    moved: (n: number) => `${files(n)} moved; labels, tags and decisions stay`,
    missing: (n: number) => `${files(n)} missing`,
    back: (n: number) => `${files(n)} back, no longer missing`,
  },
  unreadable: (n: number, reason: string) => `${files(n)} not readable: ${reason}`,
  remove: (n: number) => `Remove images whose files are missing (${files(n)}) from the dataset`,
  apply: "Apply",
  applied: "The dataset follows its folders now",
  relocateTitle: "Where is this folder now?",
  before: (source: string) => `Before: ${source}`,
  now: "Now",
  relocateHint: "A folder of the server, or s3://bucket/folder. All datasets of the folder follow.",
  check: "Check",
  compared: (name: string, n: number, missing: number, different: number) =>
    `${name}: ${files(n - missing)} of ${n.toLocaleString()} found${different ? `, ${different.toLocaleString()} different` : ""}`,
  force: "Relocate nevertheless",
  relocated: (after: string) => `The folder is ${after} now`,
} as const;

/** The words of what an addition left out. */
export const leftOut = {
  title: "Left out",
  line: (n: number, reason: string) => `${reason}: ${n.toLocaleString()}`,
  more: (n: number) => `and ${n.toLocaleString()} more`,
};
