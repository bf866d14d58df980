/** Which element of the app has the focus. */
import { root } from "#host";

/** Return whether no element of the app has the focus. */
export const isFocusFree = (): boolean => root.activeElement === null || root.activeElement === document.body;
