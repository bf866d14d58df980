import { useSignal } from "@preact/signals";
import { Image } from "#host";
import type { Row } from "../api/types";
import { t } from "../texts";
import { thumbnail, whyNotShown } from "./thumbnail";

/** The columns of a row that a thumbnail needs. */
export const THUMB_COLUMNS = ["media_id", "image_filename", "v", "is_corrupted_issue"] as const;
type ThumbRow = Pick<Row, "media_id" | "image_filename" | "v" | "is_corrupted_issue">;

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
  const failed = useSignal({ source: "", words: "" });
  const source = thumbnail(datasetId, row.media_id, row.v, size);
  const reason = row.is_corrupted_issue
    ? t.pictures.corrupted
    : failed.value.source === source
      ? failed.value.words
      : null;
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
