import { get } from "../api/http";
import type { DatasetStatus, Problem } from "../api/types";
import { leftOut } from "../texts/sources";
import { Problems } from "./Problems";
import { Pending, useResource } from "./Resource";

/** What the last addition to a dataset left out or could not use, by reason, with examples; nothing where there is none. */
export function LeftOut({ dataset: of }: { dataset: DatasetStatus }) {
  const problems = useResource<Problem[]>(
    (signal) => get(`/dataset/${of.id}/problems`, {}, signal),
    [of.id, of.updated_at],
  );
  if (!problems.value) return problems.error ? <Pending of={problems} /> : null;
  if (problems.value.length === 0) return null;
  return (
    <section aria-labelledby="left-out">
      <h2 id="left-out">{leftOut.title}</h2>
      <Problems of={problems.value} />
    </section>
  );
}
