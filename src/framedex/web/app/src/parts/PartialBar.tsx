import { post } from "../api/http";
import type { DatasetStatus } from "../api/types";
import { sayError } from "../state/notices";
import { loadTasks } from "../state/tasks";
import { t } from "../texts";
import { Button } from "./Button";

/** Start an index of all media. */
export async function reindex(datasetId: string): Promise<void> {
  try {
    await post(`/dataset/${datasetId}/reindex`);
    await loadTasks();
  } catch (error) {
    sayError(error);
  }
}

/** Says that media came after the last index, and offers to index them. */
export function PartialBar({ dataset }: { dataset: DatasetStatus }) {
  if (dataset.status_new !== "PARTIAL INDEX") return null;
  return (
    <div class="bar warning" role="status">
      {t.status.partialUnknown}
      <Button needs="dataset.edit" kind="main" onClick={() => void reindex(dataset.id)}>
        {t.status.reindex}
      </Button>
    </div>
  );
}
