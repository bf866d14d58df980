/** The words of the map. */
import type { Entity } from "../api/types";

const NOUNS = { IMAGES: ["image", "images"], OBJECTS: ["object", "objects"] } as const;

/** Return a number of images or objects in words. */
export const counted = (n: number, entity: Entity): string => `${n.toLocaleString()} ${NOUNS[entity][n === 1 ? 0 : 1]}`;

export const map = {
  name: (n: number, entity: Entity) => `Map of ${counted(n, entity)}: those that look alike lie beside each other`,
  entity: "Show",
  entities: { IMAGES: "Images", OBJECTS: "Objects" },
  pane: { IMAGES: "Images of the region", OBJECTS: "Objects of the region" },
  paneAll: { IMAGES: "All images", OBJECTS: "All objects" },
  paneFiltered: { IMAGES: "Images that pass the filter", OBJECTS: "Objects that pass the filter" },
  splitter: "Width of the images beside the map",
  colour: "Colour",
  noColour: "One colour",
  levelColour: (level: number) => `Clusters, level ${level}`,
  columns: {
    labels: "Labels",
    uniqueness_score: "Uniqueness",
    in_basket: "In the basket",
    confidence: "Confidence",
    source: "Source",
  } as Record<string, string>,
  issueValue: (name: string) => `Measured: ${name}`,
  names: "Names",
  namesAuto: "By zoom",
  namesLevel: (level: number) => `Level ${level}`,
  inView: "Clusters in view",
  zoomTo: (name: string, n: number, entity: Entity) => `${name}, ${counted(n, entity)}: zoom in`,
  zoomToUnnamed: (n: number, entity: Entity) => `${counted(n, entity)} without a name: zoom in`,
  size: counted,
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  fit: "Show all",
  region: "Draw a region",
  regionHint:
    "Drag around images. Or move the box with the arrows, size it with Shift and the arrows, and press Enter.",
  regionSmall: "This region is too small: drag around some images.",
  legend: "Colours",
  legendFilter: (name: string, n: number, entity: Entity) => `${name}, ${counted(n, entity)}: filter by it`,
  other: "Other values",
  noValue: "No value",
  noChange: "No change",
  inBasket: "In the basket",
  notInBasket: "Not in the basket",
  anotherState: "another state",
  since: (name: string) => `Changes since ${name}`,
  making: "The map is being made. It is kept until the next index.",
  abort: "Abort",
  make: "Make the map",
  again: "Make it again",
  retry: "Try again",
  ended: (reason: string) => `The map was not made: ${reason}`,
  failed: (reason: string) => `The map cannot be shown: ${reason}`,
  unindexed: "The map comes once the dataset is indexed.",
  empty: {
    IMAGES: "No image has an embedding, so there is nothing to place on the map.",
    OBJECTS: "No object has an embedding, so there is nothing to place on the map.",
  },
  stale: "The dataset has changed since this map was made.",
  madeElsewhere: "The map was made again by somebody else, and is shown as it is now.",
  notPlaced: (n: number, entity: Entity) => `${counted(n, entity)} ${n === 1 ? "is" : "are"} not on the map`,
  notPlacedWhy: "They came after the last index, or have no embedding.",
  noGraphics: "This browser cannot draw the map: it has no WebGL2. Everything else works without it.",
  clusters: "Go to the clusters",
} as const;
