import { useSignal } from "@preact/signals";
import { get } from "../api/http";
import type { DatasetStatus, LabelCount, RankedLabelIssues } from "../api/types";
import { count, share } from "../lib/format";
import { noise } from "../texts/findings";
import { Button } from "./Button";
import { Pending, useResource } from "./Resource";

/** More images are ranked when it is asked for: it takes minutes of processors for a million. */
const MOST_AT_ONCE = 50_000;

/** Labelled images, and different labels, from which on labels are ranked. */
const LEAST_LABELLED = 20;
const LEAST_LABELS = 2;

/** Return whether there are enough labels to rank them. */
export function canRank(labels: readonly LabelCount[]): boolean {
  return labels.length >= LEAST_LABELS && labels.reduce((sum, label) => sum + label.count, 0) >= LEAST_LABELLED;
}

/** The estimated share of wrong labels, what is to be expected of the ranking, and the shares by label. */
export function LabelNoise({ dataset: of, labels }: { dataset: DatasetStatus; labels: readonly LabelCount[] }) {
  const isWanted = useSignal(of.n_images <= MOST_AT_ONCE);
  return (
    <section aria-labelledby="label-noise">
      <h2 id="label-noise">{noise.wrong}</h2>
      {!canRank(labels) ? (
        <p class="hint">{noise.tooFew(LEAST_LABELLED)}</p>
      ) : isWanted.value ? (
        <Estimate dataset={of} />
      ) : (
        <Button
          onClick={() => {
            isWanted.value = true;
          }}
        >
          {noise.estimate}
        </Button>
      )}
    </section>
  );
}

/** What is shown once the labels are ranked; images with several labels may be too few for it, which the server says. */
function Estimate({ dataset: of }: { dataset: DatasetStatus }) {
  const found = useResource<RankedLabelIssues>(
    (signal) => get(`/dataset/${of.id}/labels/issues`, { limit: 1 }, signal),
    [of.id],
  );
  const first = useResource<RankedLabelIssues | null>(
    async (signal) => {
      const wrong = found.value?.estimate.n_wrong;
      return wrong ? get(`/dataset/${of.id}/labels/issues`, { offset: wrong - 1, limit: 1 }, signal) : null;
    },
    [of.id, found.value],
  );
  if (found.error?.status === 422) return <p class="hint">{found.error.message}</p>;
  if (!found.value) return <Pending of={found} />;
  const { estimate, total, classes } = found.value;
  const expected = first.value?.rows[0]?.expected_precision;
  return (
    <>
      <p>{noise.rate(estimate.n_wrong, total, share(estimate.rate), share(estimate.low), share(estimate.high))}</p>
      {expected !== undefined && <p>{noise.expected(estimate.n_wrong, share(expected))}</p>}
      {(estimate.notes.length > 0 ? estimate.notes : [noise.suits]).map((note) => (
        <p key={note} class="hint">
          {note}
        </p>
      ))}
      <details>
        <summary>{noise.byLabel}</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">{noise.columns.label}</th>
              <th scope="col">{noise.columns.images}</th>
              <th scope="col">{noise.columns.wrong}</th>
            </tr>
          </thead>
          <tbody>
            {classes.map((each) => (
              <tr key={each.label}>
                <th scope="row">{each.label}</th>
                <td class="number">{count(each.n_media)}</td>
                <td class="number">{share(each.rate)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}
