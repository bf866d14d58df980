import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { ApiError, call, get } from "../api/http";
import type { SourcePreview as Preview } from "../api/types";
import { count } from "../lib/format";
import { Button } from "../parts/Button";
import { SourcePreview } from "../parts/SourcePreview";
import { navigate, pathOf } from "../router";
import { loadDatasets } from "../state/datasets";
import { say } from "../state/notices";
import { loadTasks } from "../state/tasks";
import { t } from "../texts";
import { preview as texts } from "../texts/preview";

/** How many files, and how many bytes, a request takes along. */
const MOST_FILES = 100;
const MOST_BYTES = 32 * 2 ** 20;
const IMAGES = /\.(a?png|jpe?g|jpe|jfif|gif|tiff?|bmp|webp|jp2|j2k|avif|hei[cf]|hif|p[bgnp]m|dcm|dicom)$/i;
const VIDEOS = /\.(mp4|mov|m4v|avi|mkv|wmv|asf|flv|webm|3g[2p]|m2?ts|m2v|mpe?g|mpe|ogv|vob)$/i;
/** The files of annotations that an upload may have beside the images. */
const ANNOTATIONS = /^(annotations\.json|captions\.json|(image|object)_annotations\.(csv|parquet))$/;

/** A new dataset: of files that are uploaded, or of a folder of the server. */
export default function Import() {
  const name = useSignal("");
  const path = useSignal("");
  const files = useSignal<readonly File[]>([]);
  const progress = useSignal<number | null>(null);
  const problem = useSignal("");
  const preview = useSignal<Preview | null>(null);
  const isOver = useSignal(false);
  const id = useId();
  const start = async (event: Event): Promise<void> => {
    event.preventDefault();
    problem.value = "";
    try {
      if (files.value.length > 0) {
        await upload(name.value, files.value, (done) => {
          progress.value = done;
        });
      } else await call("POST", "/process", { query: { path: path.value, name: name.value } });
      await Promise.all([loadDatasets(), loadTasks()]);
      navigate(pathOf(name.value, "pictures"));
    } catch (error) {
      problem.value = error instanceof ApiError ? error.message : String(error);
    } finally {
      progress.value = null;
    }
  };
  const look = async (): Promise<void> => {
    problem.value = "";
    try {
      preview.value = await get<Preview>("/process/preview", { path: path.value });
    } catch (error) {
      preview.value = null;
      problem.value = error instanceof ApiError ? error.message : String(error);
    }
  };
  const take = (found: readonly File[]): void => {
    const media = found.filter((file) => [IMAGES, VIDEOS, ANNOTATIONS].some((kind) => kind.test(file.name)));
    files.value = media;
    if (media.length < found.length) say(t.import.leftOut(found.length - media.length));
  };
  return (
    <div class="page">
      <h1>{t.import.title}</h1>
      <form class="form narrow" onSubmit={(event) => void start(event)}>
        <label for={`${id}-name`}>{t.import.name}</label>
        <input
          id={`${id}-name`}
          required
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
        <div
          class={`drop ${isOver.value ? "over" : ""}`}
          onDragOver={(event) => {
            event.preventDefault();
            isOver.value = true;
          }}
          onDragLeave={() => {
            isOver.value = false;
          }}
          onDrop={(event) => {
            event.preventDefault();
            isOver.value = false;
            void filesOf(event.dataTransfer).then(take);
          }}
        >
          <label for={`${id}-files`}>{t.import.files}</label>
          <input
            id={`${id}-files`}
            type="file"
            multiple
            onChange={(event) => take([...(event.currentTarget.files ?? [])])}
          />
          <p role="status">{files.value.length > 0 && t.import.chosen(files.value.length)}</p>
        </div>
        {files.value.length === 0 && (
          <>
            <label for={`${id}-path`}>{t.import.path}</label>
            <input
              id={`${id}-path`}
              required
              placeholder="/data/photos"
              value={path.value}
              onInput={(event) => {
                path.value = event.currentTarget.value;
                preview.value = null;
              }}
            />
            <Button disabledReason={path.value.trim() === "" ? t.import.path : null} onClick={() => void look()}>
              {texts.show}
            </Button>
            {preview.value && <SourcePreview of={preview.value} />}
          </>
        )}
        {progress.value !== null && (
          <p role="status">
            <progress max={files.value.length} value={progress.value} aria-label={t.import.progress} />{" "}
            {t.import.uploaded(count(progress.value), count(files.value.length))}
          </p>
        )}
        {problem.value && (
          <p class="problem" role="alert">
            {problem.value}
          </p>
        )}
        <button type="submit" class="button main" disabled={progress.value !== null}>
          {t.import.submit}
        </button>
      </form>
    </div>
  );
}

/** Upload files into a new dataset, some at a time, and start its creation. */
async function upload(name: string, files: readonly File[], onProgress: (done: number) => void): Promise<void> {
  const { dataset_id: id } = await get<{ dataset_id: string }>("/ingestion/new_dataset", { dataset_name: name });
  try {
    const { trans_id: transaction } = await get<{ trans_id: number }>(`/ingestion/${id}/data_files`);
    let done = 0;
    for (const part of parts(files)) {
      const form = new FormData();
      for (const file of part) form.append("files", file, file.name);
      await call("POST", `/ingestion/${id}/data_files/${transaction}`, { form });
      done += part.length;
      onProgress(done);
    }
    await call("POST", `/ingestion/${id}/process_files/${transaction}`);
  } catch (error) {
    await call("DELETE", `/dataset/${id}`).catch(() => {});
    throw error;
  }
}

function* parts(files: readonly File[]): Generator<File[]> {
  let part: File[] = [];
  let bytes = 0;
  for (const file of files) {
    if (part.length > 0 && (part.length === MOST_FILES || bytes + file.size > MOST_BYTES)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(file);
    bytes += file.size;
  }
  if (part.length > 0) yield part;
}

/** Return all files that were dropped, those in folders included. */
async function filesOf(data: DataTransfer | null): Promise<File[]> {
  const entries = [...(data?.items ?? [])].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map(filesBelow))).flat();
}

async function filesBelow(entry: FileSystemEntry): Promise<File[]> {
  if (entry.isFile) {
    return [await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) break;
    found.push(...part);
  }
  return (await Promise.all(found.map(filesBelow))).flat();
}
