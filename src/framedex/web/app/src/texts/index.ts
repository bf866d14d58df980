/** All texts of the app, by part. */
import { edits } from "./edits";
import { exports } from "./exports";
import { map } from "./map";
import { notebook } from "./notebook";
import { pages } from "./pages";
import { people } from "./people";
import { places } from "./places";
import { queues } from "./queues";
import { shell } from "./shell";

export const t = { edits, map, notebook, ...exports, ...pages, ...people, ...places, ...queues, ...shell } as const;
