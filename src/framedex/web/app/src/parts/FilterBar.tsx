import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { get } from "../api/http";
import type { IssueSummary, VqlElement } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { count } from "../lib/format";
import { describe, filterText, parseFilter } from "../lib/vql";
import { query, setQuery } from "../router";
import { dataset } from "../state/datasets";
import { closeDialog, openDialog } from "../state/dialogs";
import { sayError } from "../state/notices";
import type { Results } from "../state/results";
import { t } from "../texts";
import { Button } from "./Button";
import { Check } from "./Check";
import { Dialog } from "./Dialog";

/** The filter of the present address. */
export const currentFilter = (): VqlElement[] => parseFilter(query.value.get("f"));

/** Put a filter into the address. */
export function setFilter(elements: readonly VqlElement[]): void {
  setQuery({ f: filterText(elements), at: null });
}

/** Add an element to the filter of the address. */
export function addFilter(element: VqlElement): void {
  setFilter([...parseFilter(query.peek().get("f")), element]);
}

/** The chips of the filter, and the button that adds one. */
export function FilterBar({ results }: { results: Results }) {
  const elements = useComputed(currentFilter).value;
  const add = (): void => openDialog(() => <FilterDialog results={results} />);
  useKeys("global", { filter: add });
  return (
    <div class="filters" role="group" aria-label={t.filters.name}>
      {elements.map((element, index) => {
        const words = describe(element);
        return (
          <button
            key={`${index} ${words}`}
            type="button"
            class="chip"
            aria-label={t.filters.remove(words)}
            onClick={() => setFilter(elements.filter((_, other) => other !== index))}
          >
            {words} <span aria-hidden="true">×</span>
          </button>
        );
      })}
      <Button kind="quiet" hint="F" onClick={add}>
        + {t.filters.add}
      </Button>
    </div>
  );
}

const FIELDS = [
  "labels",
  "tags",
  "issues",
  "folder",
  "file_name",
  "quality",
  "size",
  "uniqueness",
  "media",
  "vql",
] as const;
type FieldName = (typeof FIELDS)[number];
const FACETS: Partial<Record<FieldName, string>> = {
  labels: "labels",
  tags: "tags",
  issues: "issues",
  folder: "folder",
};
const QUALITIES = [
  "blur",
  "dark",
  "bright",
  "low_information",
  "grayscale",
  "odd_aspect_ratio",
  "odd_size",
  "outliers",
];

function FilterDialog({ results }: { results: Results }) {
  const field = useSignal<FieldName>("labels");
  const isOut = useSignal(false);
  const id = useId();
  const submit = (element: VqlElement): void => {
    closeDialog();
    addFilter(isOut.value ? { not: element } : element);
  };
  return (
    <Dialog title={t.filters.add} onClose={closeDialog}>
      <div class="form">
        <label for={id}>{t.filters.field}</label>
        <select
          id={id}
          data-autofocus
          value={field.value}
          onChange={(event) => {
            field.value = event.currentTarget.value as FieldName;
          }}
        >
          {FIELDS.map((each) => (
            <option key={each} value={each}>
              {t.filters.fields[each]}
            </option>
          ))}
        </select>
        {field.value !== "vql" && <Check of={isOut} words={t.filters.exclude} />}
        <FieldForm key={field.value} field={field.value} results={results} onSubmit={submit} />
      </div>
    </Dialog>
  );
}

function FieldForm({
  field,
  results,
  onSubmit,
}: {
  field: FieldName;
  results: Results;
  onSubmit: (e: VqlElement) => void;
}) {
  if (FACETS[field]) return <Facets field={field} results={results} onSubmit={onSubmit} />;
  if (field === "media") {
    return (
      <div class="facets">
        {["images", "frames", "videos"].map((value) => (
          <button key={value} type="button" class="facet" onClick={() => onSubmit({ media: { op: "is", value } })}>
            {value}
          </button>
        ))}
      </div>
    );
  }
  if (field === "quality" || field === "size" || field === "uniqueness")
    return <NumberForm field={field} onSubmit={onSubmit} />;
  return <TextForm field={field} onSubmit={onSubmit} />;
}

interface FacetCounts {
  values: { value: string | boolean; count: number }[];
  total: number;
}

function elementOf(field: FieldName, value: string): VqlElement {
  if (field === "issues") return { issues: { op: "issue", value } };
  return { [field]: { op: "is", value } };
}

/** Return the values of a field with their numbers, as the server finds them. */
async function valuesOf(
  field: FieldName,
  text: string,
  rid: string | undefined,
  signal: AbortSignal,
): Promise<FacetCounts> {
  const path = `/dataset/${dataset.peek()?.id}`;
  if (field !== "issues") {
    return get(`${path}/results/${rid}/facets`, { field: FACETS[field], q: text, limit: 100 }, signal);
  }
  const { summaries } = await get<{ summaries: IssueSummary[] }>(`${path}/issues`, { rid }, signal);
  const found = summaries.filter((each) => each.count > 0 && each.issue_type.includes(text.toLowerCase()));
  return { values: found.map((each) => ({ value: each.issue_type, count: each.count })), total: found.length };
}

/** The values of a field with their numbers. */
function Facets({
  field,
  results,
  onSubmit,
}: {
  field: FieldName;
  results: Results;
  onSubmit: (e: VqlElement) => void;
}) {
  const text = useSignal("");
  const found = useSignal<FacetCounts | null>(null);
  const rid = results.info.value?.rid;
  const id = useId();
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      valuesOf(field, text.value, rid, abort.signal)
        .then((answer) => {
          found.value = answer;
        })
        .catch((error: unknown) => {
          if (!abort.signal.aborted) sayError(error);
        });
    }, 120);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text.value, rid, field]);
  return (
    <>
      <label for={id}>{t.filters.find}</label>
      <input
        id={id}
        type="search"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
      <div class="facets" aria-busy={found.value === null}>
        {found.value?.values.map(({ value, count: n }) => (
          <button
            key={String(value)}
            type="button"
            class="facet"
            onClick={() => onSubmit(elementOf(field, String(value)))}
          >
            <span>{field === "issues" ? (t.issueNames[String(value)] ?? value) : String(value)}</span>
            <span class="number">{count(n)}</span>
          </button>
        ))}
        {found.value?.values.length === 0 && <p class="hint">{t.filters.none}</p>}
        {found.value && found.value.total > found.value.values.length && (
          <p class="hint">{t.filters.more(found.value.total)}</p>
        )}
      </div>
    </>
  );
}

const COMPARISONS = ["ge", "gt", "le", "lt", "is"] as const;
const WORDS: Record<string, string> = { ge: "≥", gt: ">", le: "≤", lt: "<", is: "=" };

function NumberForm({
  field,
  onSubmit,
}: {
  field: "quality" | "size" | "uniqueness";
  onSubmit: (e: VqlElement) => void;
}) {
  const names = field === "quality" ? QUALITIES : field === "size" ? ["width", "height", "bytes"] : [];
  const of = useSignal(names[0] ?? "");
  const op = useSignal<string>("ge");
  const value = useSignal("");
  const id = useId();
  const submit = (event: Event): void => {
    event.preventDefault();
    const number = Number(value.value);
    if (!Number.isFinite(number)) return;
    if (field === "uniqueness") onSubmit({ uniqueness: { op: "uniqueness", value: number } });
    else onSubmit({ [field]: { op: op.value, value: number, of: of.value } });
  };
  return (
    <form class="number-form" onSubmit={submit}>
      {names.length > 0 && (
        <>
          <select aria-label={t.filters.field} value={of.value} onChange={(e) => (of.value = e.currentTarget.value)}>
            {names.map((name) => (
              <option key={name} value={name}>
                {t.issueNames[name] ?? name}
              </option>
            ))}
          </select>
          <select
            aria-label={t.filters.comparison}
            value={op.value}
            onChange={(e) => (op.value = e.currentTarget.value)}
          >
            {COMPARISONS.map((each) => (
              <option key={each} value={each}>
                {WORDS[each]}
              </option>
            ))}
          </select>
        </>
      )}
      <label class="visually-hidden" for={id}>
        {t.filters.value}
      </label>
      <input
        id={id}
        type="number"
        step="any"
        required
        value={value.value}
        onInput={(e) => (value.value = e.currentTarget.value)}
      />
      <button type="submit" class="button main">
        {t.filters.add}
      </button>
    </form>
  );
}

function TextForm({ field, onSubmit }: { field: FieldName; onSubmit: (e: VqlElement) => void }) {
  const value = useSignal("");
  const problem = useSignal("");
  const id = useId();
  const submit = (event: Event): void => {
    event.preventDefault();
    if (field !== "vql") {
      onSubmit({ [field]: { op: "contains", value: value.value } });
      return;
    }
    const elements = parseFilter(value.value);
    if (elements.length === 0) problem.value = t.filters.invalid;
    else {
      closeDialog();
      setFilter([...currentFilter(), ...elements]);
    }
  };
  return (
    <form class="form" onSubmit={submit}>
      <label for={id}>{field === "vql" ? t.filters.text : t.filters.value}</label>
      {field === "vql" ? (
        <textarea
          id={id}
          rows={4}
          required
          value={value.value}
          onInput={(e) => (value.value = e.currentTarget.value)}
        />
      ) : (
        <input id={id} required value={value.value} onInput={(e) => (value.value = e.currentTarget.value)} />
      )}
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <button type="submit" class="button main">
        {t.filters.add}
      </button>
    </form>
  );
}
