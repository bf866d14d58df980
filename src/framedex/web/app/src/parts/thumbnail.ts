/** Addresses of images: thumbnails by size and content, and files; and why one is not shown. */
import { request } from "#host";
import { address, problem } from "../api/http";
import { t } from "../texts";

const SIZES = [128, 256, 512, 1024] as const;

/** Return the address of a thumbnail that is at least some pixels wide on this display. */
export function thumbnail(datasetId: string, mediaId: string, version: string | null, pixels: number): string {
  const wanted = pixels * Math.min(globalThis.devicePixelRatio || 1, 2);
  const size = SIZES.find((each) => each >= wanted * 0.8) ?? 1024;
  return address(`/dataset/${datasetId}/media/${mediaId}/thumbnail`, { size, v: version });
}

/** Return the address of the file of an image. */
export const file = (datasetId: string, mediaId: string): string =>
  address(`/dataset/${datasetId}/media/${mediaId}/file`);

/** Why an image is not shown: words for a tile, and the sentence of the service; null if that now answers with it. */
export interface Reason {
  words: string;
  sentence: string | null;
  isGone: boolean;
}

/** Ask the service why the image of an address could not be shown; elements of images do not tell. */
export async function whyNotShown(source: string): Promise<Reason> {
  const other = { words: t.pictures.notShown, sentence: null, isGone: false };
  try {
    const response = await request(source, { credentials: "same-origin" });
    if (response.ok) return other;
    const { status, message, fault } = await problem(response);
    if (status === 404) return { words: t.pictures.missing, sentence: message, isGone: true };
    return { words: t.pictures.faults[fault] ?? t.pictures.notShown, sentence: message, isGone: false };
  } catch {
    return other;
  }
}
