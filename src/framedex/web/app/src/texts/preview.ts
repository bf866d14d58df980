/** The words of the preview of a source, which are loaded with the page for new datasets. */
const KINDS: Record<string, string> = {
  list: "A list of paths",
  boxes: "A table of bounding boxes",
  folder: "A folder",
  archive: "An archive",
  file: "A file",
  pattern: "A pattern of paths",
  vectors: "A table of embeddings",
  images: "Images in Parquet files",
  s3: "Objects of a bucket",
};
const DELIMITERS: Record<string, string> = {
  ",": "commas",
  ";": "semicolons",
  "\t": "tabs",
  "|": "bars",
  " ": "blanks",
};

export const preview = {
  title: "Preview",
  show: "Preview",
  kind: (kind: string, delimiter: string | null, encoding: string | null) =>
    [
      KINDS[kind] ?? kind,
      delimiter && `cells between ${DELIMITERS[delimiter] ?? delimiter}`,
      encoding && `encoded as ${encoding}`,
    ]
      .filter(Boolean)
      .join(", "),
  found: (found: number, files: number) =>
    `${found.toLocaleString()} of the first ${files.toLocaleString()} files are there`,
  uses: {
    path: "path of the image",
    labels: "labels",
    caption: "caption",
    tags: "tags",
    boxes: "boxes",
    nothing: "left out",
    field: "field",
  },
  field: (type: string) => `field: ${type}`,
};
