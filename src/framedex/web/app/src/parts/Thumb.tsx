import { useSignal } from "@preact/signals";
import { Image } from "#host";
import type { Row } from "../api/types";
import { FAULT_COLUMNS, type FaultFlags, wordsOfRow } from "./faults";
import { thumbnail, whyNotShown } from "./thumbnail";

/** The columns of a row that a thumbnail needs. */
export const THUMB_COLUMNS = ["media_id", "image_filename", "v", ...FAULT_COLUMNS] as const;
export type ThumbRow = Pick<Row, "media_id" | "image_filename" | "v"> & FaultFlags;

/** A thumbnail, or the reason and the name of the file where there is none. */
export function Thumb({
  datasetId,
  row,
  size,
  alt = "",
  why = null,
}: {
  datasetId: string;
  row: ThumbRow;
  size: number;
  alt?: string;
  /** Why it is not shown, if that is known. */
  why?: string | null;
}) {
  const failed = useSignal({ source: "", words: "" });
  const source = thumbnail(datasetId, row.media_id, row.v, size);
  const reason = why ?? wordsOfRow(row) ?? (failed.value.source === source ? failed.value.words : null);
  if (reason !== null) {
    return (
      <span class="thumb missing" title={`${reason}: ${row.image_filename}`}>
        {size < 128 ? "⚠" : reason}
      </span>
    );
  }
  return (
    <Image
      class="thumb"
      src={source}
      alt={alt}
      loading="lazy"
      decoding="async"
      onError={() => {
        void whyNotShown(source).then(({ words }) => {
          failed.value = { source, words };
        });
      }}
    />
  );
}
