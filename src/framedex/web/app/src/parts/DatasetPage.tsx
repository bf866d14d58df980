import type { ComponentType } from "preact";
import type { DatasetStatus } from "../api/types";
import { dataset } from "../state/datasets";

/** Return the page of a dataset: a component that is made anew for each dataset. */
export function datasetPage(Page: ComponentType<{ dataset: DatasetStatus }>): ComponentType {
  return function OfDataset() {
    const found = dataset.value;
    return found ? <Page key={found.id} dataset={found} /> : null;
  };
}
