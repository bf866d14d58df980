/** All texts of the app, by part. */
import { edits } from "./edits";
import { pages } from "./pages";
import { shell } from "./shell";

export const t = { edits, ...pages, ...shell } as const;
