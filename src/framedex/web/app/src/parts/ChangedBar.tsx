import type { DatasetStatus } from "../api/types";
import { pendingChanges } from "../state/notices";
import type { Results } from "../state/results";
import { heads } from "../state/tasks";
import { t } from "../texts";
import { Button } from "./Button";

/** Says that the dataset was changed since its results were opened, by how many images, and opens them again. */
export function ChangedBar({ dataset: of, results }: { dataset: DatasetStatus; results: Results }) {
  const info = results.info.value;
  const generation = heads.value.get(of.id);
  const isOther = info !== null && generation !== undefined && generation !== "" && generation !== info.generation;
  // What the page changes itself is shown by itself.
  if (!isOther || pendingChanges.value > 0 || results.isLoading.value) return null;
  return (
    <div class="bar" role="status">
      {t.status.changed(of.n_images - info.n_images)}
      <Button kind="quiet" onClick={() => void results.reopen()}>
        {t.status.show}
      </Button>
    </div>
  );
}
