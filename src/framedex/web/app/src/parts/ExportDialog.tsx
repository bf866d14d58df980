import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { post } from "../api/http";
import type { DatasetStatus, ResultQuery, ResultsInfo } from "../api/types";
import { count, date, size } from "../lib/format";
import { closeDialog, openDialog } from "../state/dialogs";
import { exportsOf, type ListedExport, loadExports, startExport } from "../state/exports";
import { sayError } from "../state/notices";
import { kept } from "../state/preferences";
import { t } from "../texts";
import { Check } from "./Check";
import { Dialog } from "./Dialog";

type Format = keyof typeof t.exports.formats;
type Shape = keyof typeof t.exports.shapes;
type Part = keyof typeof t.exports.parts;
const FORMATS = Object.keys(t.exports.formats) as Format[];
const SHAPES = Object.keys(t.exports.shapes) as Shape[];
const PARTS = Object.keys(t.exports.parts) as Part[];
const OF_IMAGES: readonly string[] = ["imagefolder", "huggingface", "huggingface_parquet", "webdataset"];
const WITH_SPLIT: readonly string[] = ["coco", "yolo", "voc", ...OF_IMAGES];
const format = kept<string>("export-format", "json");

/** Open the dialog that exports the rows of a query, and lists exports. */
export function openExport(of: DatasetStatus, query: ResultQuery, n: number): void {
  openDialog(() => <ExportDialog dataset={of} query={query} n={n} />);
}

function ExportDialog({ dataset: of, query, n }: { dataset: DatasetStatus; query: ResultQuery; n: number }) {
  const name = useSignal(of.display_name);
  const withImages = useSignal(false);
  const strips = useSignal(false);
  const splits = useSignal(false);
  const shares = useSignal<Record<Part, string>>({ train: "80", val: "20", test: "0" });
  const shape = useSignal<Shape>("boxes");
  const id = useId();
  useEffect(() => void loadExports(of.id), [of.id]);
  const chosen = FORMATS.includes(format.value as Format) ? (format.value as Format) : "json";
  const hasSplit = splits.value && WITH_SPLIT.includes(chosen);
  const isOfImages = OF_IMAGES.includes(chosen);
  const hasImages = isOfImages || withImages.value;
  const submit = async (): Promise<void> => {
    try {
      const results = await post<ResultsInfo>(`/dataset/${of.id}/results`, query);
      await startExport(of.id, {
        file_name: name.value.trim(),
        export_format: chosen,
        on: { rid: results.rid },
        include_images: hasImages,
        strip_metadata: hasImages && strips.value,
        split: hasSplit ? sharesOf(shares.value) : null,
        confidences: chosen === "yolo" && shape.value === "confidences",
        outlines: chosen === "yolo" && shape.value === "outlines",
        keypoints: chosen === "yolo" && shape.value === "keypoints",
      });
    } catch (error) {
      sayError(error);
    }
  };
  return (
    <Dialog title={t.exports.title(n)} onClose={closeDialog} wide>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <fieldset class="choices">
          <legend>{t.exports.format}</legend>
          {FORMATS.map((each) => (
            <label key={each}>
              <input
                type="radio"
                name={`${id}-format`}
                checked={each === chosen}
                data-autofocus={each === chosen ? true : undefined}
                onChange={() => {
                  format.value = each;
                }}
              />
              {t.exports.formats[each]}
            </label>
          ))}
        </fieldset>
        <label for={`${id}-name`}>{t.exports.name}</label>
        <input
          id={`${id}-name`}
          required
          maxLength={200}
          autocomplete="off"
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
        {!isOfImages && <Check of={withImages} words={t.exports.withImages} />}
        {hasImages && <Check of={strips} words={t.exports.strip} />}
        {WITH_SPLIT.includes(chosen) && <Check of={splits} words={t.exports.split} />}
        {hasSplit && (
          <>
            <div class="number-form">
              {PARTS.map((part) => (
                <label key={part} class="inline">
                  {t.exports.parts[part]}
                  <input
                    type="number"
                    min={0}
                    max={100}
                    step="any"
                    required
                    value={shares.value[part]}
                    onInput={(event) => {
                      shares.value = { ...shares.value, [part]: event.currentTarget.value };
                    }}
                  />
                </label>
              ))}
            </div>
            <p class="hint">{t.exports.partsHint}</p>
          </>
        )}
        {chosen === "yolo" && (
          <>
            <label for={`${id}-shape`}>{t.exports.lines}</label>
            <select
              id={`${id}-shape`}
              value={shape.value}
              onChange={(event) => {
                shape.value = event.currentTarget.value as Shape;
              }}
            >
              {SHAPES.map((each) => (
                <option key={each} value={each}>
                  {t.exports.shapes[each]}
                </option>
              ))}
            </select>
          </>
        )}
        <div class="form-end">
          <button type="button" class="button" onClick={closeDialog}>
            {t.close}
          </button>
          <button type="submit" class="button main">
            {t.exports.submit}
          </button>
        </div>
      </form>
      <Kept datasetId={of.id} />
    </Dialog>
  );
}

function sharesOf(percents: Record<Part, string>): Record<string, number> {
  const found = PARTS.map((part) => [part, Number(percents[part]) / 100] as const);
  return Object.fromEntries(found.filter(([, share]) => share > 0));
}

/** The exports whose files are kept. */
function Kept({ datasetId }: { datasetId: string }) {
  const list = exportsOf.value?.datasetId === datasetId ? exportsOf.value.list : null;
  return (
    <section aria-labelledby="kept-exports">
      <h2 id="kept-exports">{t.exports.list}</h2>
      {list?.length === 0 && <p class="hint">{t.exports.none}</p>}
      <ul class="rows">
        {list?.map((each) => (
          <li key={each.id}>
            <OneExport of={each} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function OneExport({ of }: { of: ListedExport }) {
  return (
    <>
      <strong class="path">{of.file_name}</strong>
      {of.entities_count !== null && <span class="number">{count(of.entities_count)}</span>}
      {of.status === "COMPLETED" && of.download_uri ? (
        <>
          <span class="hint">
            {of.size_bytes !== null && `${size(of.size_bytes)}, `}
            {t.exports.until(date(of.expires_at))}
          </span>
          <span class="grow" />
          <a class="button" href={of.download_uri} download={of.file_name} title={of.result_message}>
            {t.exports.download}
          </a>
        </>
      ) : of.status === "PENDING" || of.status === "RUNNING" ? (
        <progress max={100} value={of.progress} aria-label={t.exports.running(of.file_name)} />
      ) : (
        <span class="problem">{t.exports.failed(of.result_message)}</span>
      )}
    </>
  );
}
