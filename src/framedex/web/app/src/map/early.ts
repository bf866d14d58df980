/** The points of a map, asked for while the code that draws them is still coming. */
import { send } from "../api/http";
import type { Entity } from "../api/types";

export interface EarlyPoints {
  datasetId: string;
  entity: Entity;
  answer: Promise<Response>;
}

/** Ask for the points of a dataset; an empty answer says that there is no map of the present index. */
export function askPoints(datasetId: string, entity: Entity): Promise<Response> {
  const kind = entity === "IMAGES" ? {} : { entity_type: entity };
  return send("GET", `/dataset/${datasetId}/map`, { query: { ...kind, required: false } });
}

/** Ask for them early; an error is that of who takes the answer. */
export function askEarly(datasetId: string, entity: Entity): EarlyPoints {
  const answer = askPoints(datasetId, entity);
  answer.catch(() => {});
  return { datasetId, entity, answer };
}
