/** The bounding boxes of images that are shown: read for many at once, and kept while the dataset is shown. */
import { signal } from "@preact/signals";
import type { Row } from "../api/types";
import { dataset } from "./datasets";
import { sayError } from "./notices";
import { readRows } from "./rows";

export interface Box {
  media_id: string;
  parent_id: string;
  /** Left, top, width and height in pixels. */
  bbox: [number, number, number, number];
  label: string | null;
  confidence: number | null;
}

const COLUMNS = ["media_id", "parent_id", "bbox", "label", "confidence"];
const WAIT_MS = 60;
const MOST_BOXES = 5_000;
const MOST_IMAGES = 2_000;
const NONE: readonly Box[] = [];
const known = signal<ReadonlyMap<string, readonly Box[]>>(new Map());
const wanted = new Map<string, string>();
let timer = 0;
let knownOf = "";

/** Return the boxes of an image, or none until they have come. */
export function boxesOf(row: Pick<Row, "media_id" | "image_filename">): readonly Box[] {
  const of = dataset.value;
  if (!of || of.n_objects <= 0) return NONE;
  const state = `${of.id} ${of.updated_at}`;
  const all = known.value; // read in any case, so that who asks is told when boxes have come
  const found = knownOf === state ? all.get(row.media_id) : undefined;
  if (found) return found;
  wanted.set(row.media_id, row.image_filename);
  clearTimeout(timer);
  timer = window.setTimeout(() => void read(of.id, state).catch(sayError), WAIT_MS);
  return NONE;
}

/** Read the boxes of the images that were asked for: objects are found by the names of their files. */
async function read(datasetId: string, state: string): Promise<void> {
  const images = new Map(wanted);
  wanted.clear();
  const any = [...new Set(images.values())].map((value) => ({ file_name: { op: "is", value } }));
  const { rows } = await readRows(datasetId, { vql: [{ any }], entity_type: "OBJECTS" }, COLUMNS, MOST_BOXES);
  const isFull = knownOf !== state || known.peek().size > MOST_IMAGES;
  const next = new Map<string, readonly Box[]>(isFull ? [] : known.peek());
  for (const id of images.keys()) next.set(id, NONE);
  for (const box of rows as unknown as Box[]) {
    const before = next.get(box.parent_id);
    if (before && images.has(box.parent_id)) next.set(box.parent_id, [...before, box]);
  }
  knownOf = state;
  known.value = next;
}
