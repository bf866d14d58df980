import { useSignal } from "@preact/signals";
import type { Row } from "../api/types";
import { t } from "../texts";
import { thumbnail } from "./thumbnail";

/** The columns of a row that a thumbnail needs. */
export const THUMB_COLUMNS = ["media_id", "image_filename", "v", "width"] as const;
type ThumbRow = Pick<Row, "media_id" | "image_filename" | "v" | "width">;

/** A thumbnail, or the reason and the name of the file where there is none. */
export function Thumb({
  datasetId,
  row,
  size,
  alt = "",
}: {
  datasetId: string;
  row: ThumbRow;
  size: number;
  alt?: string;
}) {
  const failed = useSignal("");
  const source = thumbnail(datasetId, row.media_id, row.v, size);
  // An image whose size is not known could not be decoded.
  if (row.width === null || failed.value === source) {
    return (
      <span
        class="thumb missing"
        title={`${row.width === null ? t.pictures.corrupted : t.pictures.missing}: ${row.image_filename}`}
      >
        {size < 128 ? "⚠" : row.width === null ? t.pictures.corrupted : t.pictures.missing}
      </span>
    );
  }
  return (
    <img
      class="thumb"
      src={source}
      alt={alt}
      loading="lazy"
      decoding="async"
      onError={() => {
        failed.value = source;
      }}
    />
  );
}
