/** The points of a map, asked for while the code that draws them is still coming. */
import { send } from "../api/http";
import type { Entity } from "../api/types";

/** Ask for the points of a dataset; an empty answer says that there is no map of the present index. */
export function askPoints(datasetId: string, entity: Entity): Promise<Response> {
  const kind = entity === "IMAGES" ? {} : { entity_type: entity };
  return send("GET", `/dataset/${datasetId}/map`, { query: { ...kind, required: false } });
}

/** An answer that one reader takes; if nobody does, it is not read. */
export class EarlyPoints {
  private answer: Promise<Response> | null;

  constructor(
    private readonly datasetId: string,
    private readonly entity: Entity,
  ) {
    this.answer = askPoints(datasetId, entity);
    this.answer.catch(() => {}); // an error is that of the reader
  }

  /** Return the answer to the first who asks for these points, else null. */
  take(datasetId: string, entity: Entity): Promise<Response> | null {
    if (datasetId !== this.datasetId || entity !== this.entity) return null;
    const answer = this.answer;
    this.answer = null;
    return answer;
  }

  close(): void {
    this.answer?.then((response) => response.body?.cancel()).catch(() => {});
    this.answer = null;
  }
}
