/** The words of changes. */
const images = (n: number): string => `${n.toLocaleString()} ${n === 1 ? "image" : "images"}`;

export const edits = {
  undoHint: "Undo: Ctrl Z",
  offline: "The server does not answer: nothing was changed.",
  conflict: "Not changed, because somebody else changed it meanwhile:",
  takenBack: "Not changed:",
  waitOrAbort: "Wait for it, or abort it in the list of tasks: G T",
  undone: (words: string) => `Undone: ${words}`,
  lostFiles: (n: number) => (n === 0 ? "" : `. The files of ${images(n)} are gone for good`),
  redone: (words: string) => `Done again: ${words}`,
  nothingToUndo: "There is nothing to undo here; the history has the steps of all users.",
  nothingToRedo: "There is nothing to do again.",
  refused: (n: string, reason: string) => `${n} refused: ${reason}`,
  tagged: (tag: string) => (n: number) => `Tagged ${images(n)} with ${tag}`,
  untagged: (tag: string) => (n: number) => `Removed the tag ${tag} from ${images(n)}`,
  labelled: (labels: string) => (n: number) => `Labelled ${images(n)} as ${labels || "nothing"}`,
  captioned: (n: number) => `Changed the caption of ${images(n)}`,
  fieldSet: (name: string) => (n: number) => `Set ${name} of ${images(n)}`,
  basketAdded: (n: number) => `Put ${images(n)} into the basket`,
  basketRemoved: (n: number) => `Took ${images(n)} out of the basket`,
  released: (n: number) => `${images(n)} may be removed`,
  notDuplicates: (n: number) => `Kept ${images(n)}: not duplicates`,
  labelIsRight: (n: number) => `The labels of ${images(n)} are right`,
  deleted: (n: number) => `Removed ${images(n)} from the dataset`,
};
