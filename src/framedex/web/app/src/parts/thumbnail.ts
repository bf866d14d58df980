/** Addresses of images: thumbnails by size and content, and files. */
import { address } from "../api/http";

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
