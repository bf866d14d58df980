/** Checked by the compiler alone: both surroundings of the app have the same names, of the same types. */
import type * as notebook from "./notebook";
import type * as web from "./web";

type Of<Module> = { [Name in keyof Module]: Module[Name] };
export type Same = Of<typeof notebook> extends Of<typeof web> ? true : never;
export const same: Same = true;
